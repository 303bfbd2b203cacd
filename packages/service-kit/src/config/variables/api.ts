/** Variables that only the API reads. */
import { planLimits } from "../plan-limits.ts";
import {
  bool,
  count,
  exactBool,
  hosts,
  int,
  list,
  ms,
  oneOf,
  port,
  seconds,
  secret,
  size,
  text,
  type Variable,
  withNote,
} from "../types.ts";

/** In local mode all callers are one principal, so `./svc up` multiplies its rate limits by this factor. */
export const LOCAL_MODE_FACTOR = 50;

const perWindow = (requests: number, doc: string) =>
  withNote(
    count(requests, doc),
    `\`${requests}\`; \`./svc up\` in local mode: \`${requests * LOCAL_MODE_FACTOR}\``,
  );

export const API = {
  SERVICE_PORT: port(3112, "Port of the public API."),
  SERVICE_HOST: text("127.0.0.1", "Address that the public API listens on."),
  TRUST_PROXY: int(
    0,
    "Number of proxies in front of the API: its log has the address of a client that the first of them saw (X-Forwarded-For). Above 0 its /metrics needs SVC_METRICS_TOKEN; limits are each principal's, whatever its address.",
    { max: 10 },
  ),
  LOCAL_MODE: withNote(
    exactBool(false, "`true`: no authentication; one fixed local principal."),
    "`false`; `./svc up`: `true` unless a setting turns authentication on",
  ),
  SVC_AUTH_PROVIDER: oneOf(
    ["librechat-jwt", "none", ""],
    "librechat-jwt",
    "How callers prove who they are: `librechat-jwt` or `none`.",
  ),
  SVC_ALLOW_AUTH_PROVIDER_NONE: exactBool(
    false,
    "Allows an API without authentication on an address that is not loopback.",
  ),
  SVC_ALLOWED_HOSTS: hosts(
    "Names and addresses, besides loopback, that requests may have in Host and Origin where authentication is off.",
  ),
  SVC_CONSOLE: bool(true, "The console at /console, to which / leads a browser."),
  SVC_JWT_ISSUER: text("librechat", "Required issuer of access tokens."),
  SVC_JWT_AUDIENCE: list(["codeapi"], "Accepted audiences of access tokens."),
  SVC_JWT_ALLOWED_ALGS: list(["EdDSA"], "Accepted signature algorithms: EdDSA, RS256.", ["EdDSA", "RS256"]),
  SVC_JWT_CLOCK_SKEW_SECONDS: int(30, "Tolerance for token times.", { max: 30 }),
  SVC_JWT_MAX_TTL_SECONDS: seconds(300, "Longest accepted token life.", 300),
  SVC_JWT_KEY_CACHE_TTL_SECONDS: seconds(30, "How often keys are read again.", 300),
  // A public key, but treated as a secret: somebody may paste the private key here, and logs must not show it.
  SVC_JWT_PUBLIC_KEY: secret(
    "Public key of the token signer: PEM, base64 DER, base64 PEM or JWK. Not shown in logs.",
  ),
  SVC_JWT_KID: text("", "Key id of SVC_JWT_PUBLIC_KEY."),
  SVC_JWT_KEY_ID: text("", "Alias of SVC_JWT_KID."),
  SVC_JWT_JWKS_JSON: secret("Key set `{keys:[...]}` as text. Not shown in logs."),
  SVC_JWT_PUBLIC_KEYS_DIR: text("", "Directory of key files; the file name without extension is the key id."),
  SVC_API_KEYS_FILE: text(
    "",
    "File of API keys, one JSON object per line, mode 0600 (`./svc key add NAME` writes it). Read again when it changes.",
  ),
  SVC_JWT_SINGLE_TENANT_ID: text("", "Tenant of tokens that name none."),
  SVC_TENANT_ISOLATION_STRICT: withNote(
    bool(true, "Refuse tokens that name no tenant."),
    "`true` unless SVC_JWT_SINGLE_TENANT_ID is set",
  ),
  SVC_PLAN_LIMITS: planLimits(
    "JSON: plan id (or `default`) to `{run_memory_limit?, max_file_size?}`, sizes. What exceeds the limit of the service is lowered to it.",
  ),
  SVC_CONTINUATION_SECRET: withNote(
    secret("Key of continuation tokens."),
    "derived from SVC_INTERNAL_SERVICE_TOKEN",
  ),
  SVC_MCP: bool(true, "Whether the API is an MCP server, too, at /mcp."),
  MAX_REQUESTS: perWindow(20, "Executions per window and principal."),
  RATE_LIMIT_WINDOW: ms(30_000, "Window of MAX_REQUESTS."),
  PTC_RESUME_MAX_REQUESTS: perWindow(600, "Programmatic resumes and cancels per window and principal."),
  PTC_RESUME_WINDOW: ms(30_000, "Window of PTC_RESUME_MAX_REQUESTS."),
  SVC_MAX_CONCURRENT_EXECUTIONS: int(
    20,
    "Executions of a principal that wait or run at once; beside them, as many resumes of its programs with tools. 0: no limit.",
    { max: 1_000_000 },
  ),
  SVC_MAX_UNFINISHED_JOBS: int(
    100,
    "Jobs of a principal (`Prefer: respond-async`) that wait or run at once. 0: no limit.",
    { max: 1_000_000 },
  ),
  SVC_JOB_RETENTION_SECONDS: int(3600, "How long a job and its events are kept after its end.", {
    min: 1,
    max: 604_800,
  }),
  SVC_MAX_STORED_BYTES: size(
    250_000_000,
    "All that Redis keeps of a principal for later: jobs that wait or run, ended ones with their events, paused programs, their results and answers, answers by Idempotency-Key. Beyond it no job and no program with tools starts and no larger answer is kept by Idempotency-Key, beyond twice as much no such program goes on. 0: no limit.",
  ),
  JOB_QUEUE_LIMIT: int(
    1000,
    "Executions of all principals that one API process has waiting or running at once, without resumes; more are refused with 503 `queue_saturated`. 0: no limit.",
    { max: 1_000_000 },
  ),
  UPLOAD_MAX_REQUESTS: perWindow(30, "Uploads per window and principal."),
  UPLOAD_LIMIT_WINDOW: ms(300_000, "Window of UPLOAD_MAX_REQUESTS."),
  DOWNLOAD_MAX_REQUESTS: perWindow(60, "Downloads per window and principal."),
  DOWNLOAD_LIMIT_WINDOW: ms(60_000, "Window of DOWNLOAD_MAX_REQUESTS."),
  FETCH_MAX_REQUESTS: perWindow(120, "Metadata, list and delete requests per window and principal."),
  FETCH_LIMIT_WINDOW: ms(60_000, "Window of FETCH_MAX_REQUESTS."),
  UPLOAD_MAX_FILES: count(200, "Files per upload request.", 10_000),
  UPLOAD_PART_TIMEOUT_MS: ms(30_000, "Longest silence within a part of an upload."),
  PTC_MAX_TOOLS: count(100, "Tools per programmatic execution."),
  PTC_MAX_RESULT_BYTES: size(5_000_000, "Largest tool result."),
  PTC_MAX_STATE_BYTES: size(10_000_000, "Largest stored state without results."),
} satisfies Record<string, Variable<unknown>>;
