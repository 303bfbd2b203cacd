/** Mints callback tokens, for trusted components only. A token without a grant gets a ledger record that allows tool calls only. */
import {
  type Callback,
  type Ledger,
  ledgerVerdict,
  type RecordedGrant,
  type SealKeys,
  sealCallback,
} from "@svc/capabilities";
import {
  type GrantClaims,
  type MintCallback,
  type MintedCallback,
  newId,
  type RegisterGrant,
} from "@svc/contracts";
import { type Config, storeCall } from "@svc/service-kit";
import { nowSeconds } from "./authority.ts";
import { ledgerRefused } from "./refusals.ts";

export async function mintCallback(
  keys: SealKeys,
  ledger: Ledger,
  config: Config,
  body: MintCallback,
): Promise<MintedCallback> {
  const now = nowSeconds();
  const exp = now + (body.timeoutSeconds ?? config.EGRESS_GRANT_TTL_SECONDS);
  const callback = {
    grant_id: body.grantId ?? newId(),
    exec_id: body.executionId,
    session_id: body.sessionId,
    callback_token: body.callbackToken,
    allowed_tool_names: body.allowedToolNames,
  };
  if (body.grantId === undefined) {
    await storeCall(() => ledger.register(recordFor(callback, exp, config), now));
  } else {
    await demandGood(ledger, config, callback, now);
  }
  return { grant_id: callback.grant_id, callbackToken: sealCallback(keys, callback, now, exp) };
}

/**
 * Mints a callback token for the execution of a grant. The caller chooses the id of the token's ledger record. If a record with this id exists
 * already, it must be of the same execution and still good; then it is the one that is charged.
 */
export async function mintNamed(
  keys: SealKeys,
  ledger: Ledger,
  config: Config,
  { grant_id, token, tools, life_seconds }: NonNullable<RegisterGrant["callback"]>,
  { exec_id, output_session_id }: GrantClaims,
): Promise<string> {
  const now = nowSeconds();
  const exp = now + life_seconds;
  const callback = {
    grant_id,
    exec_id,
    session_id: output_session_id,
    callback_token: token,
    allowed_tool_names: tools,
  };
  const isNew = await storeCall(() => ledger.registerOnce(recordFor(callback, exp, config), now));
  if (!isNew) await demandGood(ledger, config, callback, now);
  return sealCallback(keys, callback, now, exp);
}

async function demandGood(
  ledger: Ledger,
  config: Config,
  callback: Pick<Callback, "grant_id" | "exec_id">,
  now: number,
): Promise<void> {
  const record = await storeCall(() => ledger.find(callback.grant_id));
  const refusal = ledgerVerdict(record, callback, config.SVC_EGRESS_LEDGER_REQUIRED, now);
  if (refusal !== undefined) throw ledgerRefused(refusal);
}

/** A ledger record that allows tool calls and nothing else. */
function recordFor(
  { grant_id, exec_id, session_id }: Pick<Callback, "grant_id" | "exec_id" | "session_id">,
  exp: number,
  config: Config,
): RecordedGrant {
  return {
    grant_id,
    exec_id,
    exp,
    input_files: [],
    read_sessions: [],
    output_session_id: session_id,
    max_upload_bytes: 0,
    max_output_files: 0,
    max_requests: config.EXECUTION_MANIFEST_MAX_REQUESTS,
    max_tool_calls: config.EXECUTION_MANIFEST_MAX_TOOL_CALLS,
  };
}
