import type { ModelEntry } from '../runtime/requests/model-host.ts';

/** A model whose file is on this machine. */
export interface CatalogModel {
  /** What it is asked for by. */
  readonly reference: string;
  readonly sizeBytes: number;
  /** Milliseconds since 1970. */
  readonly modifiedMs: number;
}

/** How far a pull has come. */
export interface PullStep {
  readonly phase: string;
  readonly item: string;
  readonly doneBytes: number;
  readonly totalBytes: number | null;
}

/** Where models come from that the server was not started with. */
export interface ModelCatalog {
  list(): Promise<readonly CatalogModel[]>;
  /** The model of a reference under a name; `not_found` where its file is not here. Nothing is loaded. */
  open(reference: string, id: string | null): Promise<ModelEntry>;
  /** Brings a model's file here, inside the same limits as everywhere. */
  pull(
    reference: string,
    options: { readonly signal: AbortSignal; readonly onProgress: (step: PullStep) => void },
  ): Promise<{ readonly sizeBytes: number; readonly isDownloaded: boolean }>;
  /** Bytes that can still be allocated on this machine. */
  freeBytes(): number;
}
