"""A living index: the verbs in memory are the product's, and each life ends with the documents it should."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from incdsi.engine.settings import Settings
from incdsi.errors import InvalidInput
from incdsi_lab.baselines.protocol import moved_to
from incdsi_lab.embedded import Embedded, embed
from incdsi_lab.experiments import product
from incdsi_lab.experiments.tasks import run_tasks
from incdsi_lab.living.lives import LIVES, World
from incdsi_lab.living.report import _apart, write
from incdsi_lab.living.study import GROWTH, Living, Size, by_the_product
from tests.lab.experiments.study_problems import collection
from tests.training.training_problems import tiny_encoder


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Embedded:
    folder = tmp_path_factory.mktemp("living")
    return embed(collection(120), tiny_encoder(folder / "encoder"), cache=folder / "cache")


@pytest.fixture(scope="module")
def living(data: Embedded, tmp_path_factory: pytest.TempPathFactory) -> Living:
    return Living(data, Size(documents=110, orders=2), tmp_path_factory.mktemp("out"))


def fresh(data: Embedded) -> Settings:
    return Settings(fingerprint=data.encoder.fingerprint, dimension=data.encoder.dimension, model=None)


@pytest.mark.parametrize("name", LIVES)
def test_every_life_ends_with_each_of_its_documents_once_and_whole(name: str, living: Living, data: Embedded) -> None:
    _, ordered, life = LIVES[name]
    draw = np.random.default_rng(1)
    places = ordered(living.world, draw, 70)
    shelf = living.shelf(fresh(data))
    life(shelf, living.world, places, draw)
    assert sorted(shelf.records) == sorted(data.documents[place].id for place in places)
    assert len(shelf.live) == len(places)
    for place in places:
        record = shelf.records[data.documents[place].id]
        assert record.document.text == data.documents[place].text
        asked = {query.text for query in record.queries if not query.generated}
        if name not in ("misled", "contradicted"):
            assert asked == set(living.world.questions[place])
    test = {query.text for query in data.collection.of("test")}
    assert not test & {query.text for record in shelf.records.values() for query in record.queries}


def test_one_known_question_in_ten_is_told_of_a_wrong_document(living: Living, data: Embedded) -> None:
    draw = np.random.default_rng(0)
    places = LIVES["misled"][1](living.world, draw, 100)
    shelf = living.shelf(fresh(data))
    LIVES["misled"][2](shelf, living.world, places, draw)
    wrong = sum(
        query.text not in living.world.questions[data.collection.places[id]]
        for id, record in shelf.records.items()
        for query in record.queries
        if not query.generated
    )
    assert 8 <= wrong <= 35  # of 200


def test_a_question_taught_twice_belongs_to_its_own_document_and_lengthens_no_vector(
    living: Living, data: Embedded
) -> None:
    draw = np.random.default_rng(3)
    shelf = living.shelf(fresh(data))
    LIVES["contradicted"][2](shelf, living.world, LIVES["contradicted"][1](living.world, draw, 100), draw)
    taught = [(id, query) for id, record in shelf.records.items() for query in record.queries if query.taught]
    assert len(taught) >= 4
    for id, query in taught:
        assert query.text in living.world.questions[data.collection.places[id]]
        assert shelf.live.learned(query.embedding).top(1).rows.tolist() == [shelf.records[id].row]


def test_placed_again_everything_is_there_and_the_first_is_as_it_was(living: Living, data: Embedded) -> None:
    draw = np.random.default_rng(2)
    shelf = living.shelf(fresh(data))
    LIVES["changing"][2](shelf, living.world, LIVES["changing"][1](living.world, draw, 60), draw)
    before = {id: record.vector.copy() for id, record in shelf.records.items()}
    again = shelf.placed_again()
    assert set(again.records) == set(before)
    for id, record in again.records.items():
        assert record.row == shelf.records[id].row
        np.testing.assert_array_equal(shelf.records[id].vector, before[id])
    assert any(not np.array_equal(record.vector, before[id]) for id, record in again.records.items())


def test_a_draft_says_less_than_its_document(data: Embedded) -> None:
    world = World.of(data)
    assert all(len(world.draft(place).text) < len(world.document(place).text) for place in range(5))
    assert world.written_for(world.draft(0)) == []
    assert world.written_for(world.document(0)) == list(world.spans[0])


def test_both_shelves_are_judged_as_the_product_judges_itself(living: Living, data: Embedded) -> None:
    draw = np.random.default_rng(3)
    places = LIVES["changing"][1](living.world, draw, 90)
    shelf = living.shelf(fresh(data))
    LIVES["changing"][2](shelf, living.world, places, draw)
    again = shelf.placed_again()
    again.live.settings = replace(again.settings, lexical_weight=0.7, nearest_share=0.2)
    questions = data.test.among(moved_to(places, len(data.documents)))
    rows = np.array([shelf.records[data.documents[place].id].row for place in places])[questions.owners]
    found = by_the_product(shelf, again, questions, rows)
    for name, one in (("", shelf), (" again", again)):
        expected = product.judged(one.live.view(), {"all": replace(questions, owners=rows - 1)})
        assert {mode: found[f"{mode}{name}"] for mode in expected} == {mode: expected[mode]["all"] for mode in expected}
    assert found["fused"] != found["learned"]


def test_a_life_that_there_is_not_is_refused_with_those_there_are(data: Embedded, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no life 'quiet'; choose from random, topics"):
        Living(data, Size(), tmp_path, only=["random", "quiet"])


def test_some_lives_alone_have_a_report(data: Embedded, tmp_path: Path) -> None:
    living = Living(data, Size(documents=30, orders=2), tmp_path, only=["topics"])
    assert [task.name for task in living.tasks()] == ["weights", "topics/0", "topics/1"]
    run_tasks(living.tasks(), living.pieces)
    said = write(living, "incdsi-lab living made --only topics").with_suffix(".md").read_text()
    assert LIVES["topics"][0] in said
    assert LIVES["random"][0] not in said
    assert "new since then" not in said


def test_differences_of_one_order_have_intervals_over_its_questions() -> None:
    mine, other = "11111111" + "2222", "11112222" + "2222"
    assert _apart([mine], [other]) == "+33.3 ± 31.3"  # 4 of 12: 100 * 2.2010 * 0.4924 / sqrt(12)
    assert _apart([mine, mine], [other, other]) == "+33.3 ± 0.0"


@pytest.mark.slow  # six lives
def test_the_report_has_every_life_at_every_mark_and_is_resumed(living: Living) -> None:
    run_tasks(living.tasks(), living.pieces)
    page = write(living, "incdsi-lab living made")
    said = (page.parent / "report.md").read_text()
    for label, *_ in LIVES.values():
        assert label in said
    assert "100" in said
    assert all(f"| {100 * (times - 1):.0f} % |" in said for times in GROWTH)
    run_tasks(
        living.tasks(), living.pieces, lambda done, total: pytest.fail("computed again") if done < total else None
    )
