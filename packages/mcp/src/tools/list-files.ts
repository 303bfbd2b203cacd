/** `list_files`: stored files of one upload or run, or the files that the caller's sessions hold. */
import { z } from "zod";
import { listSessions } from "../sessions.ts";
import { describedFile, storageSession } from "./fields.ts";
import { defineTool, structured } from "./tool.ts";

const output = z.object({
  files: z.array(describedFile).optional().describe("Stored files, with session_id."),
  sessions: z
    .array(
      z.object({
        session: z
          .string()
          .nullable()
          .describe("Name for session of run_code; null for the default session."),
        files: z.array(z.object({ name: z.string(), size: z.int(), uri: z.string() })),
      }),
    )
    .optional()
    .describe("The last used sessions, without session_id."),
});

export const listFiles = defineTool({
  name: "list_files",
  title: "List files",
  description:
    "Lists the files of one upload or run by its session_id. Without it: the files in the caller's sessions, which their next run finds.",
  input: z.object({ session_id: storageSession.optional() }),
  output,
  isReadOnly: true,
  run: async ({ session_id }, { service, signal }) => {
    if (session_id !== undefined) return structured({ files: await service.filesOf(session_id, signal) });
    const sessions = await listSessions(service, signal);
    return structured({ sessions: sessions.map(({ hint, files }) => ({ session: hint ?? null, files })) });
  },
});
