/** Callers of the system who prove who they are with a token of their own on every request. */
import { createPrivateKey } from "node:crypto";
import { signerOf } from "@svc/test-kit/credentials/signer";
import { type Answer, Api, type SendOptions } from "@svc/test-kit/system/api";

export interface Identity {
  sub: string;
  tenant_id: string;
}

/** Runs the hostile programs. */
export const ATTACKER: Identity = { sub: "attacker", tenant_id: "hostile" };
/** Another user of the attacker's tenant. */
export const NEIGHBOUR: Identity = { sub: "neighbour", tenant_id: "hostile" };
/** Uses the service meanwhile, for another tenant, and must not notice anything. */
export const BYSTANDER: Identity = { sub: "bystander", tenant_id: "ordinary" };

export class PrincipalApi extends Api {
  readonly #mint: () => string;

  /** `key`: private key of the token signer, as PEM. */
  constructor(url: string, key: string, identity: Identity) {
    super(url);
    const signer = signerOf(createPrivateKey(key));
    this.#mint = () => signer.mint({ claims: { ...identity } });
  }

  /** What a request of its own carries in the header of this name. */
  authorization(): string {
    return `Bearer ${this.#mint()}`;
  }

  override send(method: string, path: string, options: SendOptions = {}): Promise<Answer> {
    const headers = { authorization: this.authorization(), ...options.headers };
    return super.send(method, path, { ...options, headers });
  }
}
