/** Mints callback tokens, for trusted components only. A token without a grant gets a ledger record that allows calls alone. */
import { type Ledger, ledgerVerdict, type SealKeys, sealCallback } from "@svc/capabilities";
import { type MintCallback, type MintedCallback, newId } from "@svc/contracts";
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
    const record = {
      grant_id: callback.grant_id,
      exec_id: callback.exec_id,
      exp,
      input_files: [],
      read_sessions: [],
      output_session_id: body.sessionId,
      max_upload_bytes: 0,
      max_output_files: 0,
      max_requests: config.EXECUTION_MANIFEST_MAX_REQUESTS,
      max_tool_calls: config.EXECUTION_MANIFEST_MAX_TOOL_CALLS,
    };
    await storeCall(() => ledger.register(record, now));
  } else {
    const record = await storeCall(() => ledger.find(callback.grant_id));
    const refusal = ledgerVerdict(record, callback, config.SVC_EGRESS_LEDGER_REQUIRED, now);
    if (refusal !== undefined) throw ledgerRefused(refusal);
  }
  return { grant_id: callback.grant_id, callbackToken: sealCallback(keys, callback, now, exp) };
}
