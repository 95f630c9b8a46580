import type { ModelEntry } from '../runtime/requests/model-host.ts';

/** A model whose file is on this machine. */
export interface CatalogModel {
  /** Identifies the model in `open` and `pull`. */
  readonly reference: string;
  /** Of its file. */
  readonly sizeBytes: number;
  /** Bytes it takes once loaded; null: unknown. */
  readonly requiredBytes: number | null;
  /** Milliseconds since 1970. */
  readonly modifiedMs: number;
}

/** A model for a first try; the figures are estimates. */
export interface CatalogSuggestion {
  /** A name that `pull` and `open` accept. */
  readonly name: string;
  /** Of the download. */
  readonly sizeBytes: number;
  /** Bytes it takes once loaded. */
  readonly requiredBytes: number;
  /** Output speed of one request on this machine. */
  readonly tokensPerSecond: number;
  readonly isDownloaded: boolean;
}

/** Models for a first try. */
export interface Suggestions {
  /** Whether models can be downloaded from the Hugging Face hub. */
  readonly isHubReachable: boolean;
  readonly models: readonly CatalogSuggestion[];
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
  /** Models for a first try, by what this machine can hold. */
  suggest(): Promise<Suggestions>;
  /** Free memory of this machine in bytes. */
  freeBytes(): number;
}
