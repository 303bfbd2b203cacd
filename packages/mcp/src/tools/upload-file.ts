/** `upload_file`: keeps a file for later runs. */
import { z } from "zod";
import { ServiceRefusal } from "../service.ts";
import { encoding, fileName, storedFile } from "./fields.ts";
import { defineTool, structured } from "./tool.ts";

const input = z.object({
  name: fileName,
  content: z.string().describe("What the file holds."),
  encoding: encoding.optional(),
});

export const uploadFile = defineTool({
  name: "upload_file",
  title: "Upload a file",
  description:
    "Stores a file for programs. The result is an entry for files of run_code, and may be used in many runs.",
  input,
  output: storedFile,
  isReadOnly: false,
  run: async ({ name, content, encoding: written }, { service, signal }) => {
    const { id, session_id, name: stored } = await service.upload(name, bytesOf(content, written), signal);
    return structured({ id, session_id, name: stored });
  },
});

/** Only base64 that is made of whole bytes, with its padding and without anything else, says what it holds in one way. */
function bytesOf(content: string, written: "utf8" | "base64" = "utf8"): Uint8Array<ArrayBuffer> {
  const bytes = Buffer.from(content, written);
  if (written === "base64" && bytes.toString("base64") !== content) {
    throw new ServiceRefusal("content: must be base64 with padding, of A-Z a-z 0-9 + / alone.");
  }
  if (written === "utf8" && !content.isWellFormed()) {
    throw new ServiceRefusal("content: must be valid Unicode; send other bytes as base64.");
  }
  return bytes;
}
