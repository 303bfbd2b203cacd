/** Lists the files in the caller's sessions. Bounded: reads only the last used sessions, one after the other. */
import { type KeptSession, type Service, ServiceRefusal, type SessionFile } from "./service.ts";
import { sessionFileUri } from "./uris.ts";

const MAX_SESSIONS = 20;
const MAX_FILES = 1000;
/** The codes of a session that has ended, and of one with damaged state. */
const WITHOUT_FILES: ReadonlySet<unknown> = new Set(["file_not_found", "input_unavailable"]);

export interface ListedSession extends KeptSession {
  files: (SessionFile & { uri: string })[];
}

export async function listSessions(service: Service, signal: AbortSignal): Promise<ListedSession[]> {
  const listed: ListedSession[] = [];
  let left = MAX_FILES;
  for (const session of (await service.sessions(signal)).slice(0, MAX_SESSIONS)) {
    const files = (await filesOf(session, service, signal)).slice(0, left);
    left -= files.length;
    listed.push({
      ...session,
      files: files.map(({ name, size }) => ({ name, size, uri: sessionFileUri(session.id, name) })),
    });
  }
  return listed;
}

/** A session may have ended since it was listed, or its state may be damaged. It then shows no files, and the others are still listed. */
async function filesOf({ id }: KeptSession, service: Service, signal: AbortSignal): Promise<SessionFile[]> {
  try {
    return await service.sessionFiles(id, signal);
  } catch (error) {
    if (error instanceof ServiceRefusal && WITHOUT_FILES.has(error.code)) return [];
    throw error;
  }
}
