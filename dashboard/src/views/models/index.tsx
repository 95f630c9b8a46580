export default function ModelsView() {
  return null;
}
