/** Variables of every component: logs, Redis, and the tokens and addresses for calls between components. */
import {
  bool,
  ms,
  oneOf,
  port,
  redisUrl,
  secret,
  size,
  text,
  url,
  urls,
  type Variable,
  withNote,
} from "../types.ts";

const pairToken = (from: string, to: string) =>
  secret(
    `Token that the ${from} shows to the ${to}, and no other component holds; while it changes, the new one and the one before, with a comma.`,
  );

export const COMMON = {
  SVC_INTERNAL_SERVICE_TOKEN: secret(
    "Token of the internal routes, one for all components; at least 32 bytes. Not needed where each pair has its own.",
  ),
  SVC_INTERNAL_TOKEN_API_TO_FILE_SERVER: pairToken("API", "file server"),
  SVC_INTERNAL_TOKEN_API_TO_TOOL_CALL_SERVER: pairToken("API", "tool call server"),
  SVC_INTERNAL_TOKEN_API_TO_EGRESS_GATEWAY: pairToken("API", "egress gateway"),
  SVC_INTERNAL_TOKEN_WORKER_TO_EGRESS_GATEWAY: pairToken("worker", "egress gateway"),
  SVC_INTERNAL_TOKEN_EGRESS_GATEWAY_TO_FILE_SERVER: pairToken("egress gateway", "file server"),
  SVC_INTERNAL_TOKEN_EGRESS_GATEWAY_TO_TOOL_CALL_SERVER: pairToken("egress gateway", "tool call server"),
  SVC_METRICS_TOKEN: secret(
    "Bearer token that /metrics then demands. Without it the API's are closed beyond loopback and behind a proxy.",
  ),
  SVC_HTTP_JSON_LIMIT: size(
    50 * 2 ** 20,
    "Largest JSON body, as of a resume with its results. A start has 8 MiB at most.",
    { min: 1024, max: 2 ** 30 },
  ),
  BODY_TIMEOUT_MS: ms(
    30_000,
    "How long the body of a request may take to arrive, besides 1 s for each MiB of it.",
  ),
  SVC_TLS_CERT_FILE: text(
    "",
    "Certificate of the component, PEM, with the ones between it and the authority. With it the component speaks TLS to others, and they to it.",
  ),
  SVC_TLS_KEY_FILE: text("", "Key of that certificate, PEM."),
  SVC_TLS_CA_FILE: text("", "Authority of all components' certificates, PEM. No other is believed."),
  SVC_ALLOW_PLAIN_HTTP: bool(
    false,
    "Lets a component other than the API listen beyond loopback without TLS: in a network that is encrypted or closed itself.",
  ),
  FILE_SERVER_URL: url("http://localhost:3000", "Address of the file server."),
  TOOL_CALL_SERVER_URL: url("http://localhost:3033", "Address of the tool call server."),
  EGRESS_GATEWAY_URL: url("http://localhost:3190", "Address of the egress gateway."),
  SANDBOX_ENDPOINT: urls("Address of the runner, with or without /api/v2; of several, a comma list.", [
    "http://localhost:2000",
  ]),
  SHUTDOWN_GRACE_MS: ms(30_000, "How long a stopping component may finish its work."),
  REDIS_URL: redisUrl(
    "Address of Redis: redis://user:password@host:port/database, rediss for TLS, sentinel form (docs/deploy.md), or unix:/path/of/socket, beside which user and password count. Wins over the other parts.",
  ),
  SVC_REDIS_SENTINEL_PASSWORD: secret("Password of the sentinels, where REDIS_URL names some."),
  REDIS_HOST: text("localhost", "Host of Redis."),
  REDIS_PORT: port(6379, "Port of Redis."),
  REDIS_USERNAME: text("", "User of Redis."),
  REDIS_PASSWORD: secret("Password of Redis."),
  REDIS_TLS: bool(false, "TLS to Redis, certificates verified."),
  REDIS_TLS_CA: text("", "File of the certificate authority for Redis."),
  LOG_LEVEL: oneOf(
    ["trace", "debug", "info", "warn", "error", "fatal"],
    "info",
    "Log verbosity of all components but the runner and the launcher.",
  ),
  SERVICE_NAME: withNote(text("", "Name in logs and traces."), "the component"),
  SVC_BUILD_COMMIT: withNote(
    text("", "Commit of the running code, as `svc_build_info` tells it."),
    "of the clone, where `./svc` starts it",
  ),
  INSTANCE_ID: withNote(text("", "Id of this process in logs."), "random"),
} satisfies Record<string, Variable<unknown>>;
