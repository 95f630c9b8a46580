/** Wire types of the server. Their text is untrusted: `format/` makes it safe to display. */

export type KeyScope = 'inference' | 'admin' | 'read-only' | 'download';

/** `GET /v1/whoami`. */
export interface Identity {
  readonly key: { readonly id: string; readonly name: string; readonly created: number } | null;
  readonly tenant: string;
  readonly scopes: readonly KeyScope[];
  readonly allows: Permissions;
  readonly is_open: boolean;
  readonly version: string;
  readonly started: number;
  readonly parts: Readonly<Partial<Record<Part, boolean>>>;
  /** False: the server has no model to answer with. */
  readonly has_models: boolean;
  readonly route_alias: string | null;
}

/** The permissions of an API key. */
export interface Permissions {
  /** Viewing its tenant's data. */
  readonly read: boolean;
  /** Generating, sending feedback, and changing its tenant's data. */
  readonly write: boolean;
  /** Viewing data that concerns all tenants. */
  readonly operate: boolean;
  /** Downloading the files of models. */
  readonly download: boolean;
  readonly admin: boolean;
}

/** Optional parts of a server. */
export type Part = 'memory' | 'learning' | 'routing' | 'catalog';

export interface ListOf<T> {
  readonly object: 'list';
  readonly data: readonly T[];
}

/** One entry of `GET /v1/models`; the router's alias has candidates instead of a state. */
export interface ModelEntry {
  readonly id: string;
  /** A short name for people; absent for the router's alias. */
  readonly display_name?: string;
  readonly created: number;
  readonly state?: 'unloaded' | 'loading' | 'loaded' | 'failed';
  readonly aliases?: readonly string[];
  /** Empty until the model is loaded. */
  readonly capabilities?: { readonly vision?: boolean };
  readonly parent?: string;
  readonly candidates?: readonly string[];
  /** Those of the candidates that run elsewhere. */
  readonly remote_candidates?: readonly string[];
}

export interface ChatTurn {
  readonly role: 'system' | 'user' | 'assistant' | 'tool';
  /** A list only in messages with images. */
  readonly content: string | readonly ContentPart[];
  readonly tool_calls?: readonly WireToolCall[];
  readonly tool_call_id?: string;
}

export type ContentPart =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'image_url'; readonly image_url: { readonly url: string } };

export interface WireToolCall {
  readonly id: string;
  readonly type: 'function';
  readonly function: { readonly name: string; readonly arguments: string };
}

/** Sampling options; the server has a default for each. */
export interface SamplingOptions {
  readonly temperature?: number;
  readonly top_p?: number;
  readonly top_k?: number;
  readonly min_p?: number;
  readonly max_tokens?: number;
  readonly seed?: number;
  readonly repetition_penalty?: number;
}

export interface ChatRequest extends SamplingOptions {
  readonly model: string;
  readonly messages: readonly ChatTurn[];
  /** Options for adding memory records to the prompt; omitted: none are added. */
  readonly memory?: Readonly<Record<string, unknown>>;
  readonly tools?: readonly object[];
  /** Whether the last message is the beginning of the answer. */
  readonly continue_final_message?: boolean;
}

export interface Usage {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly prompt_tokens_details?: { readonly cached_tokens: number };
  readonly completion_tokens_details?: { readonly reasoning_tokens: number };
}

/** One chunk of a streamed chat. */
export interface ChatChunk {
  readonly model: string;
  readonly choices: readonly {
    readonly delta: {
      readonly content?: string | null;
      readonly reasoning_content?: string;
      /** The first chunk of a call has its id and name. */
      readonly tool_calls?: readonly {
        readonly index: number;
        readonly id?: string;
        readonly function: { readonly name?: string; readonly arguments?: string };
      }[];
    };
    readonly finish_reason: string | null;
  }[];
  readonly usage?: Usage | null;
  /** In the first chunk, if records were recalled. */
  readonly memory?: RecalledMemory;
}

export interface RecalledMemory {
  readonly outcome: 'used' | 'nothing_found' | 'nothing_fitted';
  readonly num_left_out: number;
  readonly sources: readonly {
    readonly number: number;
    readonly id: string;
    readonly kind: string;
    /** Of a document; the others are present with it. */
    readonly name?: string;
    readonly headings?: readonly string[];
    readonly start_line?: number | null;
    readonly end_line?: number | null;
    readonly start_page?: number | null;
    readonly end_page?: number | null;
  }[];
}

export interface FeedbackRequest {
  readonly request_id: string;
  readonly thumbs?: 'up' | 'down';
  readonly correction?: string;
  readonly comment?: string;
}

/** What became of feedback; `pending`: the server is still learning from it. */
export interface FeedbackOutcome {
  readonly state: 'remembered' | 'learned' | 'refused' | 'already-known' | 'superseded' | 'stored' | 'pending';
  readonly reason: string;
  /** Of the correction, per token; null: not measured. */
  readonly loss_before: number | null;
  readonly loss_after: number | null;
  readonly supersedes: readonly string[];
}

export interface FeedbackReport {
  readonly outcome: FeedbackOutcome;
}

/** `GET /v1/feedback/{id}`. */
export interface FeedbackReceipt {
  readonly outcome: FeedbackOutcome | null;
}

export interface ApiKey {
  readonly id: string;
  readonly name: string;
  readonly tenant: string;
  readonly scopes: readonly KeyScope[];
  readonly created: number;
  readonly revoked: number | null;
}

export interface Adapter {
  readonly id: string;
  readonly name: string;
  readonly model: string;
  readonly tenant: string | null;
  readonly content_hash: string;
  readonly num_matrices: number;
  readonly rank: number;
  readonly size_bytes: number;
  readonly affects_kv: boolean;
}

/** The model section of `GET /props`. */
export interface Props {
  readonly version: string;
  readonly models: readonly {
    readonly id: string;
    readonly aliases: readonly string[];
    readonly state: NonNullable<ModelEntry['state']>;
    readonly error: string | null;
    readonly info: Readonly<Record<string, unknown>> | null;
    /** Of the settings file; they count before those of the model. */
    readonly sampling?: Readonly<Record<string, unknown>> | null;
  }[];
}
