/** Fields that several tools share. The service checks their values, and its sentences say what is wrong. */
import { z } from "zod";

export const fileName = z.string().describe("Path below the working directory, such as data/points.csv.");
export const encoding = z
  .enum(["utf8", "base64"])
  .describe("How content is written; utf8 where it is absent.");
export const fileId = z.string().describe("Id of the file.");
export const storageSession = z.string().describe("Its session_id, as it came with the id.");

export const storedFile = z.object({ id: fileId, session_id: storageSession, name: fileName });

export const describedFile = storedFile.extend({
  size: z.int().describe("Bytes."),
  content_type: z.string().describe("Media type."),
});
