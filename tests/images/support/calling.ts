/** Callers while containers end and come back. */
import { type Api, ID } from "@svc/test-kit/system/api";
import { until } from "@svc/test-kit/system/processes";

const ANSWER_MS = 120_000;

/**
 * Two callers, one request after the other, each sent again until it is answered, and one who leaves jobs. Answers what was answered
 * wrongly, and the jobs that were accepted.
 */
export async function callingDuring(
  api: Api,
  work: () => Promise<void>,
): Promise<{ answered: number; wrong: unknown[]; jobs: string[] }> {
  let isDone = false;
  const seen = { answered: 0, wrong: [] as unknown[], jobs: [] as string[] };
  const caller = async (name: string) => {
    for (let n = 0; !isDone; n++) {
      const word = `${name}-${n}`;
      const text = await answeredAtLast(api, word);
      seen.answered += 1;
      const { stdout } = JSON.parse(text) as { stdout?: string };
      if (stdout !== `${word}\n`) seen.wrong.push([word, text]);
    }
  };
  const leaver = async () => {
    while (!isDone) {
      const headers = { connection: "close", prefer: "respond-async" };
      const answer = await api
        .tryExec({ lang: "bash", code: "sleep 0.5; echo done" }, { headers })
        .catch(() => undefined);
      const id = answer?.status === 202 ? answer.json<{ job_id: string }>().job_id : undefined;
      if (id !== undefined && ID.test(id)) seen.jobs.push(id);
    }
  };
  const callers = [caller(`a-${Date.now()}`), caller(`b-${Date.now()}`), leaver()];
  try {
    await work();
  } finally {
    isDone = true;
    await Promise.all(callers);
  }
  return seen;
}

async function answeredAtLast(api: Api, word: string): Promise<string> {
  const headers = { connection: "close", "idempotency-key": word };
  let text = "";
  await until(
    async () => {
      const sent = api.tryExec({ lang: "bash", code: "echo $1", args: [word] }, { headers });
      const answer = await sent.catch(() => undefined);
      text = answer?.text ?? text;
      return answer?.status === 200;
    },
    ANSWER_MS,
    () => text,
  );
  return text;
}
