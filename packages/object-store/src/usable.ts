/** Whether a store can be used. A good answer holds for a while, so that frequent questions do not cost a write each; a failure is asked anew. */
import { shared } from "@svc/service-kit/health/readiness";

/** `ask` throws unless the store can be used; several questions at once share one. */
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
