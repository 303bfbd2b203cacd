/** The error for a wrong media type. It names the expected type and the one that came, without unprintable characters. */
import { ServiceError } from "@svc/contracts";

const MAX_SHOWN_CHARS = 64;

export function wrongContentType(
  wanted: string,
  came: unknown,
  options: { status?: number } = {},
): ServiceError {
  const shown =
    typeof came === "string" && came !== ""
      ? came.slice(0, MAX_SHOWN_CHARS).replace(/[^\x20-\x7e]/g, "?")
      : "none";
  return new ServiceError("invalid_content_type", `Send Content-Type: ${wanted} (got ${shown}).`, options);
}
