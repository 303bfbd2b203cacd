import { FileStorage } from "@svc/api/files/file-storage";
import { newId, ServiceError } from "@svc/contracts";
import { type InnerClient, type InnerRequest, loadConfig } from "@svc/service-kit";
import { newSecret } from "@svc/test-kit/credentials/secrets";
import { expect, test } from "vitest";

test("a commit may take the time in which a slow disk writes the largest form, and a refusal of it is final", async () => {
  const calls: InnerRequest[] = [];
  const whole = async (call: InnerRequest) => {
    calls.push(call);
    throw new ServiceError("store_unavailable");
  };
  const storage = new FileStorage({ whole } as unknown as InnerClient);
  const commit = { namespace: "acme:user:u1", read_only: false, files: [newId()] };
  await expect(storage.commit(newId(), commit, { requestId: "r" })).rejects.toThrow(ServiceError);
  const config = loadConfig("api", { LOCAL_MODE: "true", SVC_INTERNAL_SERVICE_TOKEN: newSecret() });
  const bytesPerMs = 10_000;
  const writtenMs = (config.UPLOAD_MAX_FILES * config.MAX_FILE_SIZE) / bytesPerMs;
  expect(calls.map(({ timeoutMs = 0 }) => timeoutMs >= writtenMs)).toEqual([true]);
});
