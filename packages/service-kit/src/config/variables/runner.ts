/** Variables that only the runner reads; `./svc up` reads some of them for jaild, too. */
import { MAX_JAIL_BYTES, MAX_PROCESSES, MIN_RUN_MEMORY, OPEN_FILES } from "../jail-bounds.ts";
import {
  bool,
  count,
  int,
  list,
  ms,
  oneOf,
  port,
  size,
  target,
  text,
  type Variable,
  withNote,
} from "../types.ts";

export const RUNNER = {
  PTC_SETTLE_MS: ms(15, "Quiet time that closes a batch of tool calls."),
  PTC_SETTLE_MAX_MS: ms(1000, "Latest closing of a batch of tool calls."),
  PORT: port(2000, "Port of the runner."),
  RUNNER_HOST: text("127.0.0.1", "Address that the runner listens on. Never a public one."),
  SANDBOX_LOG_LEVEL: oneOf(
    ["DEBUG", "INFO", "WARN", "ERROR"],
    "INFO",
    "Log verbosity of the runner, or of the launcher in its place.",
  ),
  SANDBOX_EXECUTE_BODY_LIMIT: size(50 * 2 ** 20, "Largest execute request of the runner.", { min: 1024 }),
  SANDBOX_ADVERTISED_URL: withNote(
    text("", "Where resumes of this runner's programs go."),
    "= SANDBOX_ENDPOINT",
  ),
  SANDBOX_MAX_CONCURRENT_JOBS: withNote(
    count(8, "Slots of a runner: programs that run at once.", 512),
    "`8`; `./svc up`: two for each processor, at least 4, as many as fit into the memory",
  ),
  SANDBOX_QUEUE_LIMIT: int(16, "Requests that may wait for a slot.", { max: 100_000 }),
  SANDBOX_QUEUE_WAIT_MS: ms(30_000, "How long a request may wait for a slot."),
  SANDBOX_MAX_PAUSED: int(32, "Paused programs kept in memory.", { max: 500 }),
  SANDBOX_MAX_PAUSED_PER_PRINCIPAL: withNote(
    int(16, "Paused programs of one user kept in memory; beyond, the user's own oldest goes.", { max: 500 }),
    "half of SANDBOX_MAX_PAUSED, rounded up",
  ),
  SANDBOX_ALLOWED_LOCAL_NETWORK_PORT: port(
    3190,
    "The one port that leads out of the sandbox. SANDBOX_FORWARD_TARGET must have the same.",
  ),
  SANDBOX_FORWARD_TARGET: target("", "Where that port leads: `{egress_gateway_host}:3190`."),
  SANDBOX_TOOL_SOCKET: text("/run/svc/3190.sock", "Path of the tool socket inside the jail."),
  SANDBOX_REQUIRE_EGRESS_MANIFEST: bool(true, "Refuse unsigned execute requests."),
  SANDBOX_EXECUTION_MANIFEST_PUBLIC_KEY: text(
    "",
    "Keys that verify manifests: PEM, base64 DER, a comma list, or a JWKS.",
  ),
  SANDBOX_RUN_MEMORY_LIMIT: size(512 * 2 ** 20, "Memory of one run.", {
    min: MIN_RUN_MEMORY,
    max: MAX_JAIL_BYTES,
  }),
  SANDBOX_COMPILE_MEMORY_LIMIT: size(1024 * 2 ** 20, "Memory of one compilation.", {
    min: MIN_RUN_MEMORY,
    max: MAX_JAIL_BYTES,
  }),
  SANDBOX_OUTPUT_KILL_FACTOR: count(64, "A run ends when a stream passes its cap this many times.", 100_000),
  SANDBOX_MAX_OUTPUT_FILES: count(50, "Output files of one run.", 10_000),
  SANDBOX_MAX_FILE_SIZE: size(10_000_000, "Largest output file of one run."),
  SANDBOX_MAX_PROCESS_COUNT: count(256, "Processes and threads of one run.", MAX_PROCESSES),
  SANDBOX_MAX_OPEN_FILES: int(2048, "Open files of one process.", OPEN_FILES),
  SANDBOX_RLIMIT_FSIZE: size(100 * 2 ** 20, "Largest file that a program may write.", {
    max: MAX_JAIL_BYTES,
  }),
  SANDBOX_UPLOAD_CONCURRENCY: count(8, "Outputs stored at once.", 64),
  SANDBOX_PRIME_CONCURRENCY: count(8, "Inputs fetched at once.", 64),
  SANDBOX_INPUT_CACHE_BYTES: size(
    256 * 2 ** 20,
    "Copies of large inputs that a runner keeps on its disk, all together. 0: none.",
    { min: 0 },
  ),
  SANDBOX_WARM_START: bool(
    true,
    "Start programs in interpreters that are already there, or in copies of them.",
  ),
  SANDBOX_WARM_POOL: withNote(
    int(
      0,
      "Warm jails kept waiting: this many for each zygote, and this many with pre-started interpreters for all languages together, at least one per such language.",
      {
        max: 512,
      },
    ),
    "automatic",
  ),
  SVC_LANGUAGES: withNote(
    list([], "Languages that are offered, or `all`; `./svc up` installs them."),
    "all installed",
  ),
  SANDBOX_PACKAGES_DIRECTORY: text("/pkgs", "Root image and runtimes of the jail."),
  SANDBOX_JAIL_SOCKET: text("/run/svc/jaild.sock", "Socket on which jaild takes runs."),
  SANDBOX_TOOL_DIRECTORY: text(
    "/run/svc/tools",
    "Folder that jaild makes; a jail sees its slot's part of it.",
  ),
} satisfies Record<string, Variable<unknown>>;
