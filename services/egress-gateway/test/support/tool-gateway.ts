/** One gateway with a tool call server and Redis for the tests of a file, and what they ask of it. */
import { type LedgerRecord, ledgerKey } from "@svc/capabilities";
import {
  type Execution,
  startToolGateway,
  type ToolGateway,
} from "@svc/test-kit/components/gateway-tool-calls";
import { Redis } from "ioredis";

export let made: ToolGateway;
export let store: Redis;

export const begin = async (env: Record<string, string> = {}) => {
  made = await startToolGateway(env);
  store = new Redis(made.redis.socket).on("error", () => {});
};
export const end = async () => {
  store.disconnect();
  await made.stop();
};

export const recordOf = async ({ grantId }: Pick<Execution, "grantId">) =>
  JSON.parse((await store.get(ledgerKey(grantId))) ?? "null") as LedgerRecord;
/** How a call was refused. */
export const refusal = async (answer: ReturnType<ToolGateway["call"]>): Promise<string> => {
  const { status, body } = await answer;
  return `${status} ${body.ledger_reason ?? body.reason ?? body.error}`;
};
/** Makes a call, answers it and gives what came back. */
export const answered = async (execution: Execution, id: string, result: unknown, input: unknown = {}) => {
  const answer = made.call(execution, id, input);
  await made.server.pending(execution, [id], 5000);
  await made.server.results(execution, [{ call_id: id, result }]);
  return answer;
};
