// Columns of a table: one that gets a name is taken, and how many are is told.

const form = document.querySelector("[data-columns]");
const told = form.querySelector("[data-taken]");
const boxes = [...form.querySelectorAll('input[name="take"]')];

function show() {
  for (const box of boxes) {
    const head = box.closest("th");
    head.classList.toggle("taken", box.checked);
    const place = head.cellIndex;
    for (const row of head.closest("table").tBodies[0].rows) {
      row.cells[place].classList.toggle("taken", box.checked);
    }
  }
  const count = boxes.filter((box) => box.checked).length;
  told.textContent = count ? `${count} ${count === 1 ? "column is" : "columns are"} taken` : "No column is taken yet";
}

form.addEventListener("input", (event) => {
  if (event.target.type === "text") {
    const box = event.target.closest("th").querySelector('input[name="take"]');
    box.checked = event.target.value.trim() !== "";
  }
  show();
});

// A click on a value takes its column, as one on its box does; a text that is being selected is left alone.
form.addEventListener("click", (event) => {
  const cell = event.target.closest("td");
  if (!cell || String(getSelection())) return;
  const head = cell.closest("table").tHead.rows[0].cells[cell.cellIndex];
  const box = head.querySelector('input[name="take"]');
  box.checked = !box.checked;
  show();
});

// Enter in a name goes on to the next one instead of sending all.
form.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.target.type !== "text") return;
  event.preventDefault();
  const names = [...form.querySelectorAll('input[type="text"]')];
  names[names.indexOf(event.target) + 1]?.focus();
});

show();
