import type { AddedDocument, NewDocument } from '../../memory/documents/documents.ts';
import type { MemoryOperation } from '../../memory/operations/operation.ts';

/** A memory on this machine or on a server. */
export interface MemoryClient {
  /** Runs an operation, with the same input and result for both. */
  call<T>(operation: MemoryOperation['name'], input: object): Promise<T>;
  /** Adds a document, whose bytes are not sent as JSON. Only a memory has documents. */
  addDocument?(document: NewDocument): Promise<AddedDocument>;
  /** The name that learning uses for the model; default: the value of --model. */
  readonly modelName?: string | null;
  close(): Promise<void>;
}

export interface ClientNeeds {
  /** Whether to find a model, downloaded if necessary. */
  readonly needsModel: boolean;
  /** Whether the command works without an embedder, with words only. Default false. */
  readonly canOmitModel?: boolean;
  /** Whether a missing memory folder is created. */
  readonly canCreate: boolean;
  /** Whether texts are embedded, if that differs from `needsModel`. */
  readonly needsVectors?: boolean;
}
