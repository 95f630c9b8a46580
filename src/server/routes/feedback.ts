import { refusal } from '../errors.ts';
import { json, type Route } from '../route.ts';
import {
  choiceField,
  numberField,
  readFields,
  required,
  schemaOf,
  stringField,
  invalid,
  type Field,
} from '../wire/fields.ts';
import { openaiErrors } from '../wire/openai/error-body.ts';

const MAX_TEXT = 2 ** 20;

interface FeedbackFields {
  request_id: string;
  score: number;
  thumbs: 'up' | 'down';
  correction: string;
  comment: string;
}
const FIELDS = {
  request_id: stringField(128, 1),
  score: numberField(0, 1),
  thumbs: choiceField(['up', 'down']),
  correction: stringField(MAX_TEXT, 1),
  comment: stringField(MAX_TEXT, 1),
} as const;

/** Answers carry the id with the prefix of their format; both forms are understood. */
const PREFIX = /^(?:chatcmpl|cmpl|resp|msg)[-_]/;

/** `POST /v1/feedback`: what somebody thinks of an answer. */
export const feedback: Route = {
  method: 'POST',
  path: '/v1/feedback',
  scope: 'inference',
  summary: 'Says how good an answer was: a score, thumbs, or what it should have been.',
  body: schemaOf(FIELDS as Readonly<Record<string, Field<unknown>>>, ['request_id']),
  errors: openaiErrors,
  async handle({ caller, services, readBody }) {
    const given = readFields<FeedbackFields>(await readBody(), FIELDS);
    const requestId = required(given.request_id, 'request_id').replace(PREFIX, '');
    const { score, thumbs, correction, comment } = given;
    if (score === null && thumbs === null && correction === null && comment === null) {
      throw invalid('score', "given, or 'thumbs', 'correction' or 'comment'", null);
    }
    const request = services.requests.find(caller.tenant, requestId);
    if (request === null) {
      throw refusal(404, 'request_not_found', `there is no request ${JSON.stringify(requestId)} among your last ones`, {
        param: 'request_id',
      });
    }
    const createdMs = services.clock.wallClock();
    await services.feedback.put({ request, score, thumbs, correction, comment, createdMs });
    return json({ object: 'feedback', request_id: requestId, accepted: true });
  },
};
