import type { RunningRequest } from '../../runtime/requests/request-pipeline.ts';

/** The field `memory` of an answer: its sources with their positions, and why there are none. Absent without recall. */
export function writeMemoryBlock({ recall }: Pick<RunningRequest, 'recall'>): { readonly memory?: object } {
  if (recall === null) return {};
  const { outcome, sources, numTokens, numLeftOut, tokenBudget } = recall;
  return {
    memory: {
      outcome,
      num_tokens: numTokens,
      token_budget: tokenBudget,
      num_left_out: numLeftOut,
      sources: sources.map(({ number, id, kind, position, isCut, tier, speaker, saidMs }) => ({
        number,
        id,
        kind,
        is_cut: isCut,
        ...(tier === undefined ? {} : { tier, speaker, said_ms: saidMs }),
        ...(position === null
          ? {}
          : {
              document_id: position.documentId,
              name: position.name,
              headings: position.headings,
              start_char: position.startChar,
              end_char: position.endChar,
              start_line: position.startLine,
              end_line: position.endLine,
              start_page: position.startPage,
              end_page: position.endPage,
            }),
      })),
    },
  };
}
