import { useId } from 'preact/hooks';
import type { LiveModel, LiveRequest } from '../../api/live.ts';
import { sessionSignal } from '../../app/session-signal.ts';
import { permissions } from '../../app/session.ts';
import { modelLabel } from '../../format/model-label.ts';
import { visibleText } from '../../format/visible-text.ts';
import { messages } from '../../messages/index.ts';

const text = messages.live;
const STATES = ['loading', 'prompt', 'generating'] as const;

export interface LiveFilter {
  /** Empty strings match everything. */
  readonly model: string;
  readonly tenant: string;
  readonly state: string;
}

export const filter = sessionSignal<LiveFilter>({ model: '', tenant: '', state: '' });

/** Whether a request passes the filters. A request without a model yet counts for the model that it names. */
export function isSelected(request: LiveRequest, { model, tenant, state }: LiveFilter): boolean {
  return (
    (model === '' || (request.model ?? request.asked_model) === model) &&
    (tenant === '' || request.tenant === tenant) &&
    (state === '' || request.state === state)
  );
}

/** Selects a model for the whole page, and a tenant and a state for the requests. */
export function Filters({ models, requests }: { models: readonly LiveModel[]; requests: readonly LiveRequest[] }) {
  const { model, tenant, state } = filter.value;
  // The selected tenant stays in the list when its last request ends.
  const tenants = [...new Set([...requests.map((request) => request.tenant), tenant])].filter((name) => name !== '');
  return (
    <div class="row live-filters" role="group" aria-label={text.filters}>
      <Select
        label={text.columns.model}
        value={model}
        onChange={(value) => (filter.value = { ...filter.value, model: value })}
        options={models.map((one) => [one.id, visibleText(modelLabel(one, models))])}
      />
      {permissions.value.admin && (
        <Select
          label={text.columns.tenant}
          value={tenant}
          onChange={(value) => (filter.value = { ...filter.value, tenant: value })}
          options={tenants.sort().map((name) => [name, visibleText(name)])}
        />
      )}
      <Select
        label={text.columns.state}
        value={state}
        onChange={(value) => (filter.value = { ...filter.value, state: value })}
        options={STATES.map((name) => [name, text.states[name]])}
      />
    </div>
  );
}

function Select(props: {
  label: string;
  value: string;
  options: readonly (readonly [value: string, label: string])[];
  onChange: (value: string) => void;
}) {
  const id = useId();
  return (
    <span>
      <label class="small soft" for={id}>
        {props.label}
      </label>{' '}
      <select id={id} class="input" value={props.value} onChange={(event) => props.onChange(event.currentTarget.value)}>
        <option value="">{text.all}</option>
        {props.options.map(([value, label]) => (
          <option key={value} value={value}>
            {label}
          </option>
        ))}
      </select>
    </span>
  );
}
