/** What a gateway reads of a request. */
export interface RequestHints {
  /** Null: none, or the body is not JSON. Nodes report such errors. */
  readonly model: string | null;
  /** The parts of the body that become the prompt, as one text that grows with the conversation; empty: none. */
  readonly promptText: string;
}

const NO_HINTS: RequestHints = { model: null, promptText: '' };

/** Fields that become the prompt, in the order in which templates write them, in all wire formats. */
const PROMPT_FIELDS = ['tools', 'system', 'instructions', 'messages', 'input', 'prompt'] as const;

/** Reads the model and the prompt of a body of any wire format. */
export function readHints(body: Uint8Array, contentType: string | null): RequestHints {
  if (body.length === 0 || contentType === null || !contentType.includes('json')) return NO_HINTS;
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder().decode(body));
  } catch {
    return NO_HINTS;
  }
  if (typeof value !== 'object' || value === null) return NO_HINTS;
  const fields = value as Readonly<Record<string, unknown>>;
  const parts = PROMPT_FIELDS.filter((name) => Object.hasOwn(fields, name) && fields[name] !== null);
  return {
    model: typeof fields['model'] === 'string' ? fields['model'].slice(0, 512) : null,
    // As JSON: a list of messages that goes on has the same text up to its last bracket.
    promptText: parts.map((name) => `${name}:${JSON.stringify(fields[name])}`).join('\n'),
  };
}
