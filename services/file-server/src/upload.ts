/** The body of a PUT as content for the store: raw bytes of any type, straight from the connection. */
import { ServiceError } from "@svc/contracts";
import type { Content } from "@svc/object-store";
import { discardBody, type FastifyRequest } from "@svc/service-kit";

/** Stores the body; when that fails, the rest of the body is read and dropped, so that the caller can read the answer. */
export async function withBody<T>(
  request: FastifyRequest,
  store: (content: Content) => Promise<T>,
): Promise<T> {
  try {
    return await store(bodyOf(request));
  } catch (error) {
    await discardBody(request.raw);
    throw error;
  }
}

async function* bodyOf(request: FastifyRequest): AsyncGenerator<Uint8Array> {
  try {
    yield* request.raw.iterator({ destroyOnReturn: false });
  } catch (error) {
    throw new ServiceError("invalid_request", "The body broke off.", { cause: error });
  }
}
