/** The rules of executions that tests parse requests by, and how a request is refused. */

import { newId, ServiceError } from "@svc/contracts";
import { thrown } from "@svc/test-kit/thrown";

export const FILE_RULES = {
  keepsSessions: false,
  maxFiles: 256,
  names: { maxLength: 256, maxDepth: 10 },
};

/** A reference to a stored file. */
export const refNamed = (name: string) => ({ id: newId(), storage_session_id: newId(), name });

/** The refusal that the call throws. */
export function refusal(run: () => unknown): ServiceError {
  const refused = thrown(ServiceError, run);
  if (refused === undefined) throw new Error("it was not refused");
  return refused;
}

/** The places that a refusal names. */
export const pathsOf = ({ details }: ServiceError) => details?.map(({ path }) => path);
