interface NamedModel {
  readonly id: string;
  readonly display_name?: string;
}

/** The display name of a model, with its id where several models have the same one. */
export function modelLabel(model: NamedModel, models: readonly NamedModel[]): string {
  const { id, display_name: name = id } = model;
  const isUnique = models.every((other) => other.id === id || other.display_name !== name);
  return isUnique ? name : `${name} (${id})`;
}
