/** The recorded calls of an execution, as the API keeps them. They are gone when the execution has expired. */
import { historyKey, type RecordedCall, recordedCallSchema, ServiceError } from "@svc/contracts";
import { type Redis, storeCall } from "@svc/service-kit";

export async function historyOf(redis: Redis, executionId: string): Promise<RecordedCall[]> {
  const texts = await storeCall(() => redis.lrange(historyKey(executionId), 0, -1));
  if (texts.length === 0) throw new ServiceError("execution_expired");
  return texts.map((text) => recordedCallSchema.parse(JSON.parse(text)));
}
