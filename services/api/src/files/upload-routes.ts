/** The two upload routes. */
import {
  batchUploadResponseSchema,
  ServiceError,
  uploadFormSchema,
  uploadResponseSchema,
} from "@svc/contracts";
import { type FastifyReply, type FastifyRequest, type HttpServer, noteFailure } from "@svc/service-kit";
import type { FileRoutesDeps } from "./deps.ts";
import type { FileStorage } from "./file-storage.ts";
import { outcomeOf, type TransferMetrics } from "./metrics.ts";
import { receiveUpload } from "./upload.ts";
import { batchAnswer, type UploadOutcome } from "./upload-answer.ts";

/** The form is read as a stream, so its schema is only documentation. */
const validatorCompiler = () => (value: unknown) => ({ value });
const form = { consumes: ["multipart/form-data"], body: uploadFormSchema, tags: ["files"] };

export function uploadRoutes(
  app: HttpServer,
  deps: FileRoutesDeps,
  storage: FileStorage,
  metrics: TransferMetrics,
): void {
  const receive = async (request: FastifyRequest, keep: "all" | "some"): Promise<UploadOutcome> => {
    try {
      const outcome = await receiveUpload(deps.config, deps.log, storage, request, {
        principal: deps.principalOf(request),
        maxFileBytes: maxFileBytes(deps, request),
        keep,
      });
      for (const part of outcome.parts) metrics.uploaded(part.ok ? "success" : outcomeOf(part.error));
      return outcome;
    } catch (error) {
      metrics.uploaded(request.raw.errored ? "aborted" : outcomeOf(error));
      throw error;
    }
  };
  app.post(
    "/v1/upload",
    {
      schema: {
        ...form,
        summary: "Upload files",
        operationId: "upload",
        response: { 200: uploadResponseSchema },
      },
      validatorCompiler,
    },
    async (request) => {
      const { session, stored } = await receive(request, "all");
      return { message: "success" as const, storage_session_id: session, files: [...stored] };
    },
  );
  app.post(
    "/v1/upload/batch",
    {
      schema: {
        ...form,
        summary: "Upload files, keeping those that can be stored",
        operationId: "uploadBatch",
        response: {
          200: batchUploadResponseSchema,
          400: batchUploadResponseSchema,
          413: batchUploadResponseSchema,
          429: batchUploadResponseSchema,
          502: batchUploadResponseSchema,
        },
      },
      validatorCompiler,
    },
    async (request, reply: FastifyReply) => {
      const { status, headers = {}, body } = batchAnswer(await receive(request, "some"), request.id);
      if (body.error !== undefined) noteFailure(request, new ServiceError(body.error, undefined, { status }));
      return reply.code(status).headers(headers).send(body);
    },
  );
}

function maxFileBytes({ config, planLimitsOf }: FileRoutesDeps, request: FastifyRequest): number {
  return Math.min(planLimitsOf(request).max_file_size ?? config.MAX_FILE_SIZE, config.MAX_FILE_SIZE);
}
