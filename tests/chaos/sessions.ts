/** The steps of a session, one after the other. Each finds what the last one that was kept has left, whole. */
import type { ExecResponse } from "@svc/contracts";
import type { Answer } from "@svc/test-kit/system/api";
import type { Step } from "./checker.ts";
import { type Chain, demand } from "./load.ts";
import { RUN_MS } from "./system.ts";

/** Fails when it finds a state that is not whole. */
const STEP = `set -e
mkdir -p .h; touch .h/a .h/b
test ! -e .h/sum || sha256sum --quiet -c .h/sum
test "$(wc -l < .h/a)" = "$(wc -l < .h/b)"
echo "$(wc -l < .h/a) before $1"
echo 1 >> .h/a
head -c 30000 /dev/urandom > .h/blob
sha256sum .h/blob > .h/sum
sleep 0.2
echo 1 >> .h/b`;

export const sessionStep: Chain = async ({ api, seen, at }) => {
  const token = seen.token();
  const name = seen.token().replace(/-\d+-t$/, `-session-${at}`);
  const steps = seen.sessions.get(name) ?? [];
  seen.sessions.set(name, steps);
  const body = { lang: "bash", code: STEP, args: [token], runtime_session_hint: name, run_timeout: RUN_MS };
  const fromMs = seen.now();
  const answer = await seen.request(
    "session",
    token,
    () => api.tryExec(body),
    (one) => judge(one, token),
  );
  steps.push({ ...(answer === undefined ? {} : stepOf(answer)), fromMs, toMs: seen.now() });
};

const foundBy = (text: string) => /^(\d+) before (\S+)\n$/.exec(text) ?? [];

function judge(answer: Answer, token: string): undefined {
  const { stdout, code } = answer.ok<ExecResponse>();
  demand(code === 0 && foundBy(stdout)[2] === token, "a step of a session", answer.text);
}

function stepOf(answer: Answer): Omit<Step, "fromMs" | "toMs"> {
  const body = answer.ok<ExecResponse>();
  return {
    found: Number(foundBy(body.stdout)[1]),
    persisted: body.session_state_persisted === true,
    restoreFailed: body.session_state_restore_failed === true,
    conflict: body.session_state_conflict === true,
  };
}
