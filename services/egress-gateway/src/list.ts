/** Lists what a grant may read in a session: the enumerated inputs and the session's `.dirkeep` files, ids as handles. */
import type { Grant, SessionHandle } from "@svc/capabilities";
import { isDirkeep, type ListedObject, MAX_DIRKEEPS } from "@svc/contracts";
import type { InnerClient } from "@svc/service-kit";
import type { Authority } from "./authority.ts";

export async function listObjects(
  authority: Authority,
  fileServer: InnerClient,
  grant: Grant,
  session: SessionHandle,
  sessionHandle: string,
  requestId: string,
): Promise<ListedObject[]> {
  const stored = await fileServer.json<ListedObject[]>({
    method: "GET",
    path: `/sessions/${session.session_id}/objects?detail=normalized`,
    requestId,
  });
  const inputs = new Set(
    grant.input_files.filter((file) => file.session_id === session.session_id).map((file) => file.id),
  );
  let dirkeeps = 0;
  return stored
    .filter((object) => inputs.has(object.id) || (isDirkeep(object.name) && ++dirkeeps <= MAX_DIRKEEPS))
    .map((object) => ({
      ...object,
      id: authority.objectHandle(grant, session.session_id, object.id, object.name),
      storage_session_id: sessionHandle,
    }));
}
