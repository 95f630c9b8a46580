import type { ModelEntry } from '../runtime/requests/model-host.ts';

/** A model whose file is on this machine. */
export interface CatalogModel {
  /** Identifies the model in `open` and `pull`. */
  readonly reference: string;
  readonly sizeBytes: number;
  /** Milliseconds since 1970. */
  readonly modifiedMs: number;
}

/** Progress of a pull. */
export interface PullStep {
  readonly phase: string;
  readonly item: string;
  readonly doneBytes: number;
  readonly totalBytes: number | null;
}

/** Models that can be added while the server runs. */
export interface ModelCatalog {
  list(): Promise<readonly CatalogModel[]>;
  /** A downloaded model under the name `id`, not loaded yet, with a context of its own if `maxContext` is a number; `not_found` if its file is missing. */
  open(reference: string, id: string | null, maxContext?: number | null): Promise<ModelEntry>;
  /** Downloads a model's file within the usual limits. */
  pull(
    reference: string,
    options: { readonly signal: AbortSignal; readonly onProgress: (step: PullStep) => void },
  ): Promise<{ readonly sizeBytes: number; readonly isDownloaded: boolean }>;
  /** Free memory of this machine in bytes. */
  freeBytes(): number;
}
