/** Variables that `./svc up` reads: for itself, and for the options of jaild. */
import {
  exactBool,
  int,
  list,
  oneOf,
  seconds,
  secret,
  size,
  text,
  type Variable,
  withNote,
} from "../types.ts";

/** The file system sizes that jaild accepts. */
const FILE_SYSTEM_BYTES = { min: 65_536, max: 2 ** 40 };

/** Limits that jaild enforces, on this machine or in microVMs. */
export const FILE_SYSTEMS = {
  SANDBOX_WORKSPACE_MAX_BYTES: size(512 * 2 ** 20, "Size of a workspace.", FILE_SYSTEM_BYTES),
  SANDBOX_WORKSPACE_MAX_FILES: int(65_536, "Files and directories of a workspace.", {
    min: 16,
    max: 4_194_304,
  }),
  SANDBOX_TMP_MAX_BYTES: size(100 * 2 ** 20, "Size of /tmp in a jail.", FILE_SYSTEM_BYTES),
} satisfies Record<string, Variable<unknown>>;

export const LAUNCHER = {
  ...FILE_SYSTEMS,
  SANDBOX_JOB_UID_BASE: int(200_000, "First user id of the slots; the 16 below are for components.", {
    min: 1016,
    max: 4_000_000_000,
  }),
  SANDBOX_JOB_GID_BASE: int(200_000, "First group id of the slots; the 16 below are for components.", {
    min: 1016,
    max: 4_000_000_000,
  }),
  SVC_DATA_DIR: text("./data", "Local mode: objects, Redis files, generated secrets, sockets, pid files."),
  SVC_SETTINGS_FILE: withNote(
    text("", "File of settings for every `./svc` command; also `--settings FILE`."),
    "`svc.env` in the data folder, where there is one",
  ),
  LOG_ROTATE_BYTES: size(
    50 * 2 ** 20,
    "Log files that `./svc` writes are rotated beyond this size; `0`: never. See docs/logs.md.",
  ),
  LOG_ROTATE_KEEP: int(5, "How many rotated files of each log are kept.", { min: 1, max: 100 }),
  SVC_TOPOLOGY: withNote(
    oneOf(
      ["combined", "separate"],
      "combined",
      "How `./svc up` runs API, worker, file server, egress gateway and tool call server: as one process, or each as its own.",
    ),
    "`combined` in local mode, `separate` with authentication",
  ),
  SVC_IMAGE_STRICT: exactBool(
    false,
    "`true`: `./svc up` refuses an image of Debian packages that are not in the repository's manifest.",
  ),
  SVC_PACKAGES: withNote(
    list([], "Groups of packages (`data`, `documents`, `media`) and folders of your own: docs/packages.md."),
    "as before; none at first",
  ),
  SVC_ALLOW_PRIVILEGED_COMPONENTS: exactBool(
    false,
    "`true`: `./svc up` runs components as root where they cannot have users of their own.",
  ),
  SVC_READY_TIMEOUT: seconds(60, "Time that `./svc up` gives the components to get ready."),
  SVC_TOKEN: secret("JWT or API key that `./svc exec` sends. No component reads it."),
} satisfies Record<string, Variable<unknown>>;
