import { parseMediaType } from '../core/media-type.ts';
import { isJson } from '../server/body-type.ts';
import { checkShape } from '../server/json-body.ts';

/** What a gateway reads of a request. */
export interface RequestHints {
  /** Null: none, or the body is not JSON. Nodes report such errors. */
  readonly model: string | null;
  /** The parts of the body that become the prompt, as one text that grows with the conversation; empty: none. */
  readonly promptText: string;
  /** Whether it asks for a stream; null: it does not say. */
  readonly stream: boolean | null;
}

/** A smaller body cannot take long to parse, whatever is in it. */
const LARGE_BODY_BYTES = 65_536;
/** A body of 4 MB with more values takes up to 600 ms to parse, in which no other request is answered; nodes refuse it by default. */
const SHAPE = { maxJsonDepth: 1000, maxJsonValues: 200_000 };

const NO_HINTS: RequestHints = { model: null, promptText: '', stream: null };

/** Fields that become the prompt, in the order in which templates write them, in all wire formats. */
const PROMPT_FIELDS = ['tools', 'system', 'instructions', 'messages', 'input', 'prompt'] as const;

/** Reads the model and the prompt of a body of any wire format. Never throws: nodes report what is wrong. */
export function readHints(body: Uint8Array, contentType: string | null): RequestHints {
  const type = parseMediaType(contentType);
  // Ollama's examples send JSON as a form.
  if (body.length === 0 || !(isJson(type) || type?.type === 'application/x-www-form-urlencoded')) return NO_HINTS;
  try {
    if (body.length > LARGE_BODY_BYTES) checkShape(body, SHAPE);
    return hintsOf(JSON.parse(new TextDecoder().decode(body)));
  } catch {
    return NO_HINTS; // no JSON, or nested too deeply to be written again
  }
}

function hintsOf(value: unknown): RequestHints {
  if (typeof value !== 'object' || value === null) return NO_HINTS;
  const fields = value as Readonly<Record<string, unknown>>;
  const parts = PROMPT_FIELDS.filter((name) => Object.hasOwn(fields, name) && fields[name] !== null);
  return {
    model: typeof fields['model'] === 'string' ? fields['model'].slice(0, 512) : null,
    // As JSON: a list of messages that goes on has the same text up to its last bracket.
    promptText: parts.map((name) => `${name}:${JSON.stringify(fields[name])}`).join('\n'),
    stream: typeof fields['stream'] === 'boolean' ? fields['stream'] : null,
  };
}
