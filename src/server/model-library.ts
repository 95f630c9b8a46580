/** A model that a user has defined: another one with defaults of its own. */
export interface SavedModel {
  readonly from: string;
  readonly system: string | null;
  /** In Ollama's spelling. */
  readonly parameters: Readonly<Record<string, unknown>>;
  /** Path of a LoRA adapter; null: none. */
  readonly adapter: string | null;
  readonly messages: readonly { readonly role: string; readonly content: string }[];
  /** Milliseconds since 1970. */
  readonly createdMs: number;
}

/** A model whose file is on this machine. */
export interface LibraryModel {
  /** The short name, else the reference. */
  readonly name: string;
  readonly path: string;
  readonly sizeBytes: number;
  /** Milliseconds since 1970. */
  readonly modifiedMs: number;
  readonly sha256: string | null;
}

/** Facts from the header of a model file. */
export interface ModelFileFacts {
  readonly displayName: string;
  readonly architecture: string;
  readonly numParameters: number;
  readonly quantization: string;
  /** Whether its architecture generates text. */
  canGenerate(): Promise<boolean>;
  readonly contextLength: number | null;
  readonly template: string | null;
  readonly license: string | null;
  /** Numbers, flags and short texts, without the vocabulary. */
  readonly metadata: Readonly<Record<string, string | number | boolean>>;
}

/** The models of this machine by the names that people use for them. */
export interface ModelLibrary {
  list(): Promise<readonly LibraryModel[]>;
  /** The downloaded file of a name or reference; `not_found`, with suggestions if the name is unknown. */
  locate(name: string): Promise<LibraryModel>;
  /** Null: the file cannot be read. */
  describe(path: string): ModelFileFacts | null;
  /** Removes a saved model, or a file from the cache; `not_found` if there is none. */
  remove(name: string): Promise<void>;
  /** Throws `invalid_option` for paths: clients must not name local files. */
  requireReference(name: string): void;
  readonly saved: {
    find(name: string): Promise<SavedModel | null>;
    list(): Promise<readonly (SavedModel & { readonly name: string })[]>;
    save(name: string, model: SavedModel): Promise<void>;
  };
}
