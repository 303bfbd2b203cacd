/** Files as resources. Files in the caller's sessions are listed; stored files are read by the URIs that results contain. */
import type { ReadResourceResult, Resource } from "@modelcontextprotocol/sdk/types.js";
import { MAX_READ_BYTES, resourceOf } from "./file-content.ts";
import { ProtocolError, RESOURCE_NOT_FOUND } from "./handle.ts";
import type { Service } from "./service.ts";
import { listSessions } from "./sessions.ts";
import { addressOf, SESSION_FILE, STORED_FILE } from "./uris.ts";

export const TEMPLATES = [
  {
    name: "stored file",
    uriTemplate: STORED_FILE,
    description: "A file that was uploaded, or that a run left.",
  },
  { name: "session file", uriTemplate: SESSION_FILE, description: "A file in the caller's session." },
];

export async function listResources(service: Service, signal: AbortSignal): Promise<Resource[]> {
  const sessions = await listSessions(service, signal);
  return sessions.flatMap(({ hint, files }) =>
    files.map(({ name, size, uri }) => ({
      uri,
      name,
      size,
      description: hint === undefined ? "In the default session." : `In the session ${hint}.`,
    })),
  );
}

export async function readResource(
  uri: string,
  service: Service,
  signal: AbortSignal,
): Promise<ReadResourceResult> {
  const address = addressOf(uri);
  if (address === undefined)
    throw new ProtocolError(
      RESOURCE_NOT_FOUND,
      `There is no such resource; addresses are ${STORED_FILE} and ${SESSION_FILE}.`,
    );
  const bytes =
    address.kind === "stored"
      ? await service.download(address, MAX_READ_BYTES, signal)
      : await service.sessionFile(address.id, address.name, MAX_READ_BYTES, signal);
  return { contents: [resourceOf(uri, bytes)] };
}
