/** Caches whether a store is usable. A success is cached for a while, so that frequent checks do not cost a write each; a failure is not. */
import { shared } from "@svc/service-kit/health/readiness";

/** `ask` throws unless the store is usable. Concurrent checks share one call of it. */
export function usableFor(goodForMs: number, ask: () => Promise<void>): () => Promise<void> {
  let goodUntil = 0;
  const asked = shared(async () => {
    await ask();
    goodUntil = performance.now() + goodForMs;
  });
  return async () => {
    if (performance.now() >= goodUntil) await asked();
  };
}
