/** `upload_file`: keeps a file for later runs. */
import { z } from "zod";
import { base64Bytes } from "../base64.ts";
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

function bytesOf(content: string, written: "utf8" | "base64" = "utf8"): Uint8Array<ArrayBuffer> {
  if (written === "base64") return base64Bytes(content, "content");
  if (content.isWellFormed()) return Buffer.from(content, "utf8");
  throw new ServiceRefusal("content: must be valid Unicode; send other bytes as base64.");
}
