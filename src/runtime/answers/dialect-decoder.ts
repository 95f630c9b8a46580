import type { ToolDialect } from '../../chat/tools/dialect.ts';
import type { StreamDecoder, Tokenizer } from '../../tokenizers/types.ts';

/**
 * Shows the control tokens that the dialect writes calls and thoughts with; others are no part of an answer. Those that
 * end an answer are never shown, also where they are asked to be ignored.
 */
export function createDialectDecoder(
  tokenizer: Tokenizer,
  { format, reasoning }: ToolDialect,
  { keepLeadingSpace }: { readonly keepLeadingSpace: boolean },
): StreamDecoder {
  const decoder = tokenizer.createStreamDecoder({ skipSpecial: false, keepLeadingSpace });
  const texts = [...format.markers, ...(reasoning === null ? [] : [...reasoning.opens, ...reasoning.closes])];
  const isShown = (id: number): boolean => {
    if (!tokenizer.isControl(id)) return tokenizer.tokenBytes(id).length > 0;
    if (tokenizer.isEndOfGeneration(id)) return false;
    const piece = tokenizer.piece(id);
    return texts.some((text) => text.includes(piece));
  };
  return {
    push: (id) => (isShown(id) ? decoder.push(id) : ''),
    flush: () => decoder.flush(),
  };
}
