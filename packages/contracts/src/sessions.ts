/**
 * Names for persistent sessions that all components share. A session belongs to a user. A hint selects it; without a hint it is the
 * user's default session. Its state is a snapshot of the workspace: an object in file storage, which a record in Redis points to.
 */
import { z } from "zod";
import { idSchema } from "./ids.ts";

/** The caller's name for one of its sessions. */
export const sessionHintSchema = z
  .string()
  .regex(/^[A-Za-z0-9._:-]{1,128}$/, "must have 1 to 128 of A-Z a-z 0-9 . _ : -");

/** Name of the snapshot among the inputs of a run. It is never a file of the workspace. */
export const SNAPSHOT_NAME = "session-workspace.tar";
/** Workspace files of Python's variables: those that the run saved, and those that it began with, until it saves its own. */
export const VARIABLES_NAME = ".session_state.pkl";
export const LAST_VARIABLES_NAME = ".session_state.last";
/** The file that a run leaves behind when it is killed while saving its variables. */
export const UNFINISHED_VARIABLES_NAME = ".session_state.new";

const RESERVED: ReadonlySet<string> = new Set([
  SNAPSHOT_NAME,
  VARIABLES_NAME,
  LAST_VARIABLES_NAME,
  UNFINISHED_VARIABLES_NAME,
]);

/** Whether any segment of the path is a name that the service reserves for sessions. */
export const isReservedName = (path: string): boolean => path.split("/").some((name) => RESERVED.has(name));

const SNAPSHOTS = "session-state";

/** The storage namespace of a user's snapshots. It belongs to no caller, so no caller can see or reference them. */
export const snapshotNamespaceOf = (namespace: string): string => `${namespace}:${SNAPSHOTS}`;

/** Unambiguous, because namespaces of callers have three or five parts. */
export function isSnapshotNamespace(namespace: string): boolean {
  const parts = namespace.split(":");
  return parts.length === 4 && parts[3] === SNAPSHOTS;
}

/** Most entries of a snapshot: files, directories, symbolic links. */
export const MAX_SNAPSHOT_ENTRIES = 10_000;

/** A stored snapshot. `size`: bytes as stored. */
export const snapshotSchema = z.object({
  id: idSchema,
  storage_session_id: idSchema,
  size: z.number().int().nonnegative(),
});
export type Snapshot = z.infer<typeof snapshotSchema>;

const MAX_DROPPED = 100;

/** Variables that could not be saved or restored, and why. */
export const droppedVariablesSchema = z
  .array(
    z.object({
      name: z.string().max(200).meta({ description: "Name of the variable.", example: "connection" }),
      reason: z.string().max(200).meta({
        description: "What kept it from being saved or restored.",
        example: "cannot pickle a socket",
      }),
    }),
  )
  .max(MAX_DROPPED)
  .optional()
  .meta({ description: "Python variables of the session that could not be saved or restored, up to 100." });
export type DroppedVariable = NonNullable<z.infer<typeof droppedVariablesSchema>>[number];
