/**
 * Runs that a guest makes before it is saved: what takes time in a first run (code that Node has not compiled yet, pages that nobody has
 * read, interpreters that have not started) is behind all guests that go on from it. The programs are the launcher's own: they keep no
 * file, are asked by nobody and have no grant.
 */
import { askRound } from "@svc/worker/runner/round";
import type { Guest } from "./guest.ts";

const HELLOS: Readonly<Record<string, { name: string; content: string }>> = {
  bash: { name: "main.sh", content: "echo 1" },
  python: { name: "main.py", content: "print(1)" },
  javascript: { name: "main.js", content: "console.log(1)" },
};
const ROUNDS = 8;
/** No further round begins then: an emulated processor takes seconds for each. */
const ENOUGH_MS = 15_000;
const RUN_MS = 120_000;
const MAX_ANSWER_BYTES = 1024 * 1024;

/** `languages`: of the image. Rejects when a program does not print what it should. */
export async function warmUp(guest: Guest, languages: readonly string[]): Promise<void> {
  const began = performance.now();
  for (let round = 0; round < ROUNDS && performance.now() - began < ENOUGH_MS; round++) {
    for (const language of languages) {
      const file = HELLOS[language];
      if (file === undefined) continue;
      const answer = await askRound(guest.runs, {
        path: "/api/v2/execute",
        body: JSON.stringify({ language, version: "*", files: [file] }),
        requestId: "warm-up",
        signal: AbortSignal.timeout(RUN_MS),
        maxBytes: MAX_ANSWER_BYTES,
      });
      if ("paused" in answer || answer.stdout !== "1\n")
        throw new Error(`a first program in ${language} did not run`);
    }
  }
}
