/** What a run tells while it goes on. jaild sends output as it comes, what comes within 20 ms together. */
import type { OutputStream, RunEvent } from "@svc/contracts";
import { outputDecoder } from "./decode-output.ts";

export type TellEvent = (event: RunEvent) => void;

export class RunEvents {
  readonly #tell: TellEvent;
  readonly #runtime: { language: string; version: string };
  /** Each keeps the bytes of a character whose end is still to come. */
  readonly #decoders = { stdout: outputDecoder(), stderr: outputDecoder() };
  #hasStarted = false;
  #isOpen = true;

  constructor(tell: TellEvent, { language, version }: { language: string; version: string }) {
    this.#tell = tell;
    this.#runtime = { language, version };
  }

  /** Its notice may come after the first output. */
  started(): void {
    if (this.#hasStarted) return;
    this.#hasStarted = true;
    this.#tell({ event: "started", ...this.#runtime });
  }

  /** Output of earlier rounds, which were told or were not asked for. */
  passOver(stream: OutputStream, bytes: Buffer): void {
    this.#decoders[stream].decode(bytes);
  }

  output(stream: OutputStream, bytes: Buffer): void {
    if (!this.#isOpen) return;
    this.started();
    const text = this.#decoders[stream].decode(bytes);
    if (text !== "") this.#tell({ event: stream, text });
  }

  /** Nothing is told any more: the answer tells the rest. */
  end(): void {
    this.#isOpen = false;
  }
}
