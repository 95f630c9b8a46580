import { describeFailure } from '../../errors.ts';
import { readBytes, readJsonBody } from '../../json-body.ts';
import type { Exchange } from '../../route.ts';
import { createNdjsonResponse } from '../../sse.ts';
import { collectIgnored } from '../../wire/fields.ts';
import { ollamaErrors } from '../../wire/ollama/error-body.ts';

/** Reads the body. Ollama's examples use `curl -d`, which sends JSON as a form; pages of other sites are rejected by their origin. */
export async function readRequestOf<T>(exchange: Exchange, read: (body: unknown) => T): Promise<T> {
  const { request, services, bodyType } = exchange;
  const isForm = bodyType?.type === 'application/x-www-form-urlencoded' && !request.headers.has('origin');
  if (!isForm) return await exchange.readRequest(read);
  // A new request, because the one of a socket cannot be copied.
  const bytes = await readBytes(request, services.limits.maxBodyBytes);
  const asJson = { method: 'POST', headers: { 'content-type': 'application/json' }, body: bytes as BodyInit };
  const body = await readJsonBody(new Request(request.url, asJson), services.limits, services.clock);
  return services.isStrict ? read(body) : collectIgnored(() => read(body)).value;
}

/** A stream of objects whose last one is an error if it fails. */
export function streamObjects(
  { caller, services }: Pick<Exchange, 'caller' | 'services'>,
  messages: AsyncIterable<object>,
  abort: () => void,
): Response {
  return createNdjsonResponse({
    caller,
    services,
    messages,
    abort,
    toError(error) {
      const failure = describeFailure(error);
      const { requestId } = caller;
      if (failure.status !== 499) services.logger.log('warn', 'stream failed', { requestId, code: failure.code });
      return ollamaErrors.body(failure, requestId);
    },
  });
}
