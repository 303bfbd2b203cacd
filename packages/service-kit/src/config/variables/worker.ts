/** Variables that only the worker reads. */
import { CANARY_MAX_AGE_MS } from "@svc/contracts";
import {
  count,
  int,
  ms,
  oneOf,
  port,
  seconds,
  secret,
  text,
  urls,
  type Variable,
  withNote,
} from "../types.ts";

/** The next canary must succeed before the last success is too old. This margin is for its run on a slow machine. */
const CANARY_MARGIN_MS = 15_000;

export const WORKER = {
  SANDBOX_RUNNER_URLS: withNote(
    urls("All addresses that runners advertise, a comma list; resumes go nowhere else."),
    "SANDBOX_ENDPOINT",
  ),
  SVC_RUNNER_DISCOVERY: oneOf(
    ["off", "dns", "srv"],
    "off",
    "How runners are found: each address of SANDBOX_ENDPOINT is one, or its name has many in DNS (docs/several-machines.md).",
  ),
  PYTHON_CONCURRENCY: withNote(
    count(1, "Concurrent Python jobs of a worker.", 1024),
    "`1`; `./svc up`: SANDBOX_MAX_CONCURRENT_JOBS",
  ),
  OTHER_CONCURRENCY: withNote(
    count(8, "Concurrent jobs of other languages of a worker.", 1024),
    "`8`; `./svc up`: SANDBOX_MAX_CONCURRENT_JOBS",
  ),
  WORKER_HEALTH_PORT: port(3113, "Port of the worker's operational routes."),
  WORKER_HOST: text("127.0.0.1", "Address that the worker listens on."),
  CANARY_INTERVAL_MS: int(
    30_000,
    "How often an idle worker proves that executions work. 0: only at its start, and an idle service is not ready a minute later. In milliseconds.",
    { min: 0, max: CANARY_MAX_AGE_MS - CANARY_MARGIN_MS },
    "milliseconds",
  ),
  EGRESS_GATEWAY_REQUEST_TIMEOUT_MS: ms(30_000, "Time limit of the worker's calls to the gateway."),
  EGRESS_GATEWAY_REVOKE_TIMEOUT_MS: ms(5000, "Time limit of the worker's revocations."),
  SVC_EXECUTION_MANIFEST_PRIVATE_KEY: secret("Ed25519 key that signs manifests: PEM or base64 DER (PKCS8)."),
  EXECUTION_MANIFEST_TTL_SECONDS: seconds(300, "Life of a manifest.", 600),
} satisfies Record<string, Variable<unknown>>;
