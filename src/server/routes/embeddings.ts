import { refusal } from '../errors.ts';
import type { Route } from '../route.ts';
import { openaiErrors } from '../wire/openai/error-body.ts';

/** `POST /v1/embeddings`: refused until a model can embed. */
export const embeddings: Route = {
  method: 'POST',
  path: '/v1/embeddings',
  scope: 'inference',
  summary: 'Vectors of texts; not supported by this version.',
  body: { type: 'object' },
  errors: openaiErrors,
  async handle({ readBody }) {
    await readBody();
    throw refusal(501, 'not_implemented', 'embeddings are not supported by this version');
  },
};
