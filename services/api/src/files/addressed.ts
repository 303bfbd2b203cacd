/** The file and the namespace that a request's path and query name. Ids were checked before; the query is untrusted. */
import { namespaceOf } from "@svc/contracts";
import type { FastifyRequest } from "@svc/service-kit";
import type { FileRoutesDeps } from "./deps.ts";
import type { FileAddress } from "./file-storage.ts";
import { type OwnerFields, ownerOf } from "./owner.ts";

export function namespaceFor(deps: FileRoutesDeps, request: FastifyRequest): string {
  return namespaceOf(deps.principalOf(request), ownerOf(request.query as OwnerFields));
}

export function addressOf(request: FastifyRequest): FileAddress {
  const { session_id, fileId } = request.params as { session_id: string; fileId: string };
  return { session: session_id, file: fileId };
}
