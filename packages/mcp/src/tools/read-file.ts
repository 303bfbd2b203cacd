/** `read_file`: the content of a stored file. */
import { z } from "zod";
import { contentOfFile, MAX_READ_BYTES } from "../file-content.ts";
import { fileUri } from "../uris.ts";
import { fileId, storageSession } from "./fields.ts";
import { defineTool } from "./tool.ts";

export const readFile = defineTool({
  name: "read_file",
  title: "Read a file",
  description: `Returns the content of a stored file: text, a picture, or other bytes as base64; at most ${MAX_READ_BYTES / 2 ** 20} MiB.`,
  input: z.object({ id: fileId, session_id: storageSession }),
  isReadOnly: true,
  run: async (file, { service, signal }) => {
    const bytes = await service.download(file, MAX_READ_BYTES, signal);
    return { content: [contentOfFile(fileUri(file), bytes)] };
  },
});
