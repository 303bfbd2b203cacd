/** Somebody who uses the service for ordinary things while a test does something hostile to it. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Api } from "./api.ts";

export interface Observed {
  served: number;
  failures: string[];
  worstMs: number;
  latenciesMs: number[];
}

const PAUSE_MS = 50;

/** Sends a small request after the other until `hostile` settles, and for a moment after it. */
export async function observe<T>(api: Api, hostile: Promise<T>): Promise<{ result: T; observed: Observed }> {
  const observed: Observed = { served: 0, failures: [], worstMs: 0, latenciesMs: [] };
  let isOver = false;
  const settled = hostile.finally(() => {
    isOver = true;
  });
  settled.catch(() => undefined);
  let extra = 2;
  while (!isOver || extra-- > 0) {
    const word = `${observed.served}`;
    const began = performance.now();
    try {
      const answer = await api.exec({ lang: "bash", code: "cat; echo > made.txt", stdin: word });
      if (answer.stdout === word && answer.code === 0 && answer.files.length === 1) observed.served++;
      else observed.failures.push(JSON.stringify(answer));
    } catch (error) {
      observed.failures.push(String(error));
    }
    observed.latenciesMs.push(performance.now() - began);
    observed.worstMs = Math.max(...observed.latenciesMs);
    await sleep(PAUSE_MS);
  }
  return { result: await settled, observed };
}
