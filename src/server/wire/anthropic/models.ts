import type { ModelStatus } from '../../../runtime/requests/model-host.ts';
import { displayNameOf } from '../../model-name.ts';
import type { Services } from '../../services.ts';
import { pageAfter, readOption } from '../page-query.ts';
import { queryInteger } from '../query-fields.ts';

/** A model in Anthropic's format; its context length is known once it is loaded. */
export function writeModelInfo(status: ModelStatus, services: Pick<Services, 'library'>) {
  const { id, created, model } = status;
  const maxContext = model?.modelInfo().maxContext ?? null;
  return {
    type: 'model',
    id,
    display_name: displayNameOf(status, services),
    created_at: new Date(created * 1000).toISOString(),
    lifecycle: 'active',
    deprecated_at: null,
    retires_at: null,
    line: null,
    capabilities: null,
    max_input_tokens: maxContext,
    max_tokens: maxContext,
  };
}

/** A page of models: those after `after_id`, or the last ones before `before_id`. */
export function writeModelPage(
  models: readonly ModelStatus[],
  services: Pick<Services, 'library'>,
  query: URLSearchParams,
): object {
  const limit = readOption(query, 'limit', queryInteger(1, 1000), 20);
  const all = models.map((status) => writeModelInfo(status, services));
  const before = query.get('before_id');
  const isBackward = before !== null;
  const page = pageAfter(isBackward ? all.toReversed() : all, {
    after: before ?? query.get('after_id'),
    limit,
    param: isBackward ? 'before_id' : 'after_id',
  });
  const data = isBackward ? page.data.toReversed() : page.data;
  return { data, has_more: page.hasMore, first_id: data[0]?.id ?? null, last_id: data.at(-1)?.id ?? null };
}
