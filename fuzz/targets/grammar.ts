import { RuvLLMError } from '../../src/core/errors.ts';
import { compileGrammar, type GrammarSource } from '../../src/sampling/grammar/index.ts';
import { decode, encode, type FuzzTarget } from '../target.ts';

/** The first byte chooses the kind. */
function sourceOf(bytes: Uint8Array): GrammarSource {
  const text = decode(bytes.subarray(1));
  if (bytes[0]! % 3 === 0) return { type: 'gbnf', text };
  if (bytes[0]! % 3 === 1) return { type: 'regex', pattern: text };
  try {
    return { type: 'json_schema', schema: JSON.parse(text) as unknown };
  } catch (error) {
    throw new RuvLLMError('invalid_option', 'not JSON', { cause: error });
  }
}
const seed = (kind: 0 | 1 | 2, text: string): Uint8Array => Uint8Array.from([kind, ...encode(text)]);

export const grammarTarget: FuzzTarget = {
  name: 'grammar',
  words: ['root ::= ', '::=', '"a"', '[a-z]', '[^"\\\\]', '{1,3}', '(a|b)*', '\\u{10ffff}', '"type":"object"', '"properties":{}', '"required":["a"]', '"$ref":"#"', '"$defs"', '"allOf":[]', '"anyOf":[{}]', '"pattern":"^a+$"', '"enum":[1,"a",null]', '"minItems":2', '"uniqueItems":true', '"format":"date-time"', '"multipleOf":0.1', '"additionalProperties":false', '"if":{}', '"not":{}'], // prettier-ignore
  seeds: () => [
    seed(0, 'root ::= item ("," item)*\nitem ::= [a-z]+ | "(" root ")" | "\\x41"{1,3}'),
    seed(1, '^(a|b){2,5}[^\\d\\s]+\\p{L}?(?:x|y)*$'),
    seed(
      2,
      '{"type":"object","properties":{"a":{"type":"integer","minimum":1},"b":{"type":"array","items":{"$ref":"#"},"maxItems":3}},"required":["a"],"additionalProperties":false}',
    ),
    seed(
      2,
      '{"anyOf":[{"type":"string","pattern":"^[a-z]{1,4}$"},{"enum":[1,null,"x"]},{"type":"number","multipleOf":0.5,"exclusiveMaximum":9}]}',
    ),
  ],
  run: (bytes) => (bytes.length === 0 ? null : compileGrammar(sourceOf(bytes), { maxSteps: 200_000, maxStates: 4000 })),
};
