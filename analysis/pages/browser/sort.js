// Tables sort by any column: numbers by what they are (a <data> element says it), text by its parts.

function cellKey(row, column) {
  const cell = row.cells[column];
  if (!cell) return "";
  const told = cell.querySelector("data");
  const text = told ? told.value : cell.textContent.trim();
  const plain = text.replace(/,/g, "");
  return plain !== "" && !Number.isNaN(Number(plain)) ? Number(plain) : text;
}

// Numbers come before text, whichever way the table is sorted; equal rows stay as they were.
function compareKeys(one, other, direction) {
  const isNumber = typeof one === "number";
  if (isNumber !== (typeof other === "number")) return isNumber ? -1 : 1;
  if (isNumber) return direction * (one - other);
  return direction * one.localeCompare(other, "en", { numeric: true });
}

function sortBy(table, column) {
  const heads = table.tHead.rows[0].cells;
  const up = heads[column].getAttribute("aria-sort") !== "ascending";
  for (const head of heads) head.removeAttribute("aria-sort");
  heads[column].setAttribute("aria-sort", up ? "ascending" : "descending");
  const body = table.tBodies[0];
  const rows = Array.from(body.rows, (row, place) => ({ row, place, key: cellKey(row, column) }));
  rows.sort((a, b) => compareKeys(a.key, b.key, up ? 1 : -1) || a.place - b.place);
  for (const { row } of rows) body.appendChild(row);
}

function makeSortable(table) {
  if (!table.tHead || !table.tBodies[0] || table.tBodies[0].rows.length < 2) return;
  Array.from(table.tHead.rows[0].cells).forEach((head, column) => {
    if (!head.textContent.trim()) return;
    head.tabIndex = 0;
    head.classList.add("sorts");
    head.title = "sort";
    head.addEventListener("click", () => sortBy(table, column));
    head.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      sortBy(table, column);
    });
  });
}

document.querySelectorAll("table").forEach(makeSortable);
