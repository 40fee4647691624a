"""SQLAlchemy's create_all of tables that reference each other: what it makes, what the server says of it, and what its
unit of work does with it."""

import pytest
import sqlalchemy as sa
from sqlalchemy import orm


class Base(orm.DeclarativeBase):
    pass


book_tags = sa.Table(
    "book_tags",
    Base.metadata,
    sa.Column("book_id", sa.ForeignKey("books.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("tag_id", sa.ForeignKey("tags.id"), primary_key=True),
)


class Author(Base):
    __tablename__ = "authors"

    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    name: orm.Mapped[str] = orm.mapped_column(sa.String(60), unique=True)
    mail: orm.Mapped[str | None] = orm.mapped_column(index=True)
    books: orm.Mapped[list["Book"]] = orm.relationship(back_populates="author", cascade="all, delete-orphan")


class Book(Base):
    __tablename__ = "books"
    __table_args__ = (
        sa.UniqueConstraint("author_id", "title", name="title_once"),
        sa.Index("by_year", "year", "title"),
        sa.CheckConstraint("year > 0", name="has_year"),
    )

    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    author_id: orm.Mapped[int] = orm.mapped_column(
        sa.ForeignKey("authors.id", name="book_author", ondelete="CASCADE", deferrable=True, initially="DEFERRED")
    )
    title: orm.Mapped[str]
    year: orm.Mapped[int | None]
    prequel_id: orm.Mapped[int | None] = orm.mapped_column(sa.ForeignKey("books.id", ondelete="SET NULL"))
    author: orm.Mapped[Author] = orm.relationship(back_populates="books")
    tags: orm.Mapped[list["Tag"]] = orm.relationship(secondary=book_tags)


class Tag(Base):
    __tablename__ = "tags"

    id: orm.Mapped[int] = orm.mapped_column(sa.Sequence("tag_numbers", start=100, increment=10), primary_key=True)
    name: orm.Mapped[str] = orm.mapped_column(unique=True)


@pytest.fixture
def engine(server):
    url = f"postgresql+psycopg://test@127.0.0.1:{server.port}/onrush"
    engine = sa.create_engine(url)
    Base.metadata.create_all(engine)
    # A second time there is nothing to do.
    Base.metadata.create_all(engine)
    yield engine
    Base.metadata.drop_all(engine)
    assert sa.inspect(engine).get_table_names() == []
    assert sa.inspect(engine).get_sequence_names() == []
    engine.dispose()


def library(session):
    books = [Book(title="one", year=2001, tags=[Tag(name="x"), Tag(name="y")]), Book(title="two")]
    author = Author(name="ann", books=books)
    session.add(author)
    session.commit()
    return author


def test_objects_that_belong_together_come_and_go_together(engine):
    with orm.Session(engine) as session:
        author = library(session)
        first, second = author.books
        assert [tag.id for tag in first.tags] == [100, 110]
        second.prequel_id = first.id
        session.commit()
        session.delete(first)
        session.commit()
        session.refresh(author)
        assert author.books == [second] and second.prequel_id is None
        session.delete(author)
        session.commit()
        assert session.scalars(sa.select(Book)).all() == []


def test_rows_go_with_the_row_that_they_reference(engine):
    with orm.Session(engine) as session:
        author = library(session)
        session.execute(sa.delete(Author).where(Author.id == author.id))
        session.commit()
        assert session.scalar(sa.select(sa.func.count()).select_from(Book)) == 0
        assert session.scalar(sa.select(sa.func.count()).select_from(book_tags)) == 0


def test_a_reference_to_nothing_is_an_integrity_error(engine):
    with orm.Session(engine) as session:
        session.add(Book(author_id=99, title="nobody's"))
        with pytest.raises(sa.exc.IntegrityError) as caught:
            session.commit()
        assert caught.value.orig.diag.constraint_name == "book_author"


def test_the_inspector_tells_what_was_made(engine):
    inspector = sa.inspect(engine)
    assert sorted(inspector.get_table_names()) == ["authors", "book_tags", "books", "tags"]
    keys = {key["name"]: key for key in inspector.get_foreign_keys("books")}
    assert sorted(keys) == ["book_author", "books_prequel_id_fkey"]
    assert keys["book_author"]["options"] == {"ondelete": "CASCADE", "initially": "DEFERRED", "deferrable": True}
    assert keys["books_prequel_id_fkey"]["referred_table"] == "books"
    indexes = {index["name"]: index for index in inspector.get_indexes("books")}
    assert sorted(indexes) == ["by_year", "title_once"]
    assert indexes["by_year"]["column_names"] == ["year", "title"]
    (unique,) = inspector.get_unique_constraints("authors")
    assert (unique["name"], unique["column_names"]) == ("authors_name_key", ["name"])
    assert "tag_numbers" in inspector.get_sequence_names()
    reflected = sa.MetaData()
    reflected.reflect(engine)
    assert sorted(reflected.tables) == sorted(Base.metadata.tables)
