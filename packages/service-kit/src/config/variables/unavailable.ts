/** Variables of features that this version does not offer. */
import { seconds, text, type Variable } from "../types.ts";

export const UNAVAILABLE = {
  SANDBOX_WORKSPACE_ROOT: text("/tmp/sandbox", "Place of workspaces."),
  SANDBOX_WORKSPACE_REAPER_MAX_AGE_SECONDS: seconds(3600, "Age at which a left-over workspace is removed."),
} satisfies Record<string, Variable<unknown>>;
