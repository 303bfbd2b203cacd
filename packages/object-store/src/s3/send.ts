/**
 * Sends spooled content. Content of at most one part takes one request; larger content is a multipart upload with several parts at
 * once. The SDK adds a checksum to each request, which the server verifies. A multipart upload that fails is aborted. A part is in
 * memory only while it is sent, and all parts of the store share one memory budget. The SDK's lib-storage does not fit: it sets no
 * time limit for a request, shares no budget between uploads, and aborts an upload while its other parts are still being sent.
 */
import {
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  UploadPartCommand,
} from "@aws-sdk/client-s3";
import { mapLimited } from "@svc/service-kit/map-limited";
import { Semaphore } from "@svc/service-kit/semaphore";
import type { Bucket } from "./bucket.ts";
import { LONG, SHORT, within } from "./client.ts";
import { s3Call } from "./errors.ts";
import type { Spool } from "./spool.ts";

const PART_BYTES = 8 * 2 ** 20;
const MAX_PARTS = 10_000;
const PARTS_AT_ONCE = 3;
const MEMORY_BYTES = 64 * 2 ** 20;

export class Sender {
  readonly #bucket: Bucket;
  readonly #memory = new Semaphore({ units: MEMORY_BYTES });

  constructor(bucket: Bucket) {
    this.#bucket = bucket;
  }

  /** After a failure the key may hold the whole content, but never a part of it. */
  async send(key: string, spool: Spool): Promise<void> {
    if (spool.size > PART_BYTES) return this.#sendParts(key, spool);
    await this.#memory.run(async () => {
      await this.#bucket.put(key, await spool.read(0, spool.size));
    }, spool.size);
  }

  async #sendParts(key: string, spool: Spool): Promise<void> {
    const { client, name } = this.#bucket;
    // The time limit starts with the first part: until then the content waits for memory.
    let together: AbortSignal | undefined;
    const inTime = () => {
      together ??= AbortSignal.timeout(LONG.totalMs);
      return within(LONG, together);
    };
    const target = { Bucket: name, Key: key };
    const uploadId = await s3Call("beginning an upload", async () => {
      const { UploadId } = await client.send(new CreateMultipartUploadCommand(target), within(SHORT));
      if (UploadId === undefined) throw new Error("the answer names no upload");
      return UploadId;
    });
    try {
      const Parts = await mapLimited(partsOf(spool.size), PARTS_AT_ONCE, (part) =>
        this.#sendPart(key, uploadId, spool, part, inTime),
      );
      const input = { ...target, UploadId: uploadId, MultipartUpload: { Parts } };
      await s3Call("completing an upload", () =>
        client.send(new CompleteMultipartUploadCommand(input), inTime()),
      );
    } catch (error) {
      // The sweep aborts later what cannot be aborted now.
      await this.#bucket.abortUpload(key, uploadId).catch(() => undefined);
      throw error;
    }
  }

  #sendPart(
    key: string,
    uploadId: string,
    spool: Spool,
    { number, position, length }: Part,
    inTime: () => ReturnType<typeof within>,
  ) {
    const sent = () =>
      s3Call("sending a part", async () => {
        const input = {
          ...{ Bucket: this.#bucket.name, Key: key, UploadId: uploadId },
          ...{ PartNumber: number, Body: await spool.read(position, length) },
        };
        const answer = await this.#bucket.client.send(new UploadPartCommand(input), inTime());
        const { ETag, ChecksumCRC32, ChecksumCRC64NVME } = answer;
        return {
          ...{ PartNumber: number, ETag },
          ...(ChecksumCRC32 === undefined ? {} : { ChecksumCRC32 }),
          ...(ChecksumCRC64NVME === undefined ? {} : { ChecksumCRC64NVME }),
        };
      });
    return this.#memory.run(sent, length);
  }
}

interface Part {
  number: number;
  position: number;
  length: number;
}

function partsOf(size: number): Part[] {
  const bytes = Math.max(PART_BYTES, Math.ceil(size / MAX_PARTS));
  return Array.from({ length: Math.ceil(size / bytes) }, (_unused, index) => ({
    number: index + 1,
    position: index * bytes,
    length: Math.min(bytes, size - index * bytes),
  }));
}
